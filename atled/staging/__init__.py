"""From functions to running programs: traced, looked up, compiled, launched.

`jit` is the public decorator, `signature` processes arguments, `launch` generates the code for cached calls,
`compiles` logs compilations and their reasons, `ahead` is ahead-of-time compilation, `pmap` a program over devices.
"""
