"""From functions to running programs: traced, looked up, compiled, launched.

`jit` is what users call, `signature` how a function takes its arguments, `launch` the code that is generated for a call
seen before, `compiles` the record of what was compiled and why, `ahead` the stages one at a time, `pmap` a program
over devices. What functions refer to, by which traced ones are found again, is in `higher_order/keys.py`.
"""
