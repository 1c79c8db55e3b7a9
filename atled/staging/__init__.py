"""Traces functions, looks up or compiles their programs, and launches them.

`jit` is the public decorator, `jit_signature` processes arguments, `launch_codegen` generates the code for cached
calls, `recompilation` logs compilations and their reasons, `aot` compiles ahead of time, `pmap` runs one example per
device.
"""
