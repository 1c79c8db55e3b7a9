"""Benchmarks of atled against JAX and against calls of compiled programs without atled, interleaved in one run."""
