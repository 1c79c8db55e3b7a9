"""Functions of functions: forward mode, linearization, transposition, batching, and what is made of them."""
