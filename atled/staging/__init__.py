"""From functions to running programs: traced, looked up, compiled, launched.

`jit` is the public decorator, `jit_signature` processes arguments, `launch_codegen` generates the code for cached
calls, `recompilation` logs compilations and their reasons, `aot` is ahead-of-time compilation, `pmap` a program over
devices.
"""
