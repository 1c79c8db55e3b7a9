"""One table of calls for all of `atled.numpy`, `linalg` and `fft`; `tests/numpy/test_table.py` holds the laws."""

from table import creation, elementwise, products, reductions, shapes
from table.calls import Call, public_functions

CALLS: list[Call] = [*elementwise.ROWS, *reductions.ROWS, *shapes.ROWS, *creation.ROWS, *products.ROWS]
FUNCTIONS: dict[str, list[Call]] = {}
for call in CALLS:
    FUNCTIONS.setdefault(call.covers, []).append(call)

ELSEWHERE = {
    "__array_namespace_info__": "inspection; tests/numpy/test_standard.py",
    "array_repr": "text; tests/numpy/test_inspection.py",
    "array_str": "text; tests/numpy/test_inspection.py",
    "frompyfunc": "functions with methods; tests/numpy/test_protocols.py",
    "fromfile": "files; tests/numpy/test_manipulation.py",
    "get_printoptions": "text; tests/numpy/test_inspection.py",
    "load": "files; tests/numpy/test_inspection.py",
    "printoptions": "text; tests/numpy/test_inspection.py",
    "save": "files; tests/numpy/test_inspection.py",
    "savez": "files; tests/numpy/test_inspection.py",
    "set_printoptions": "text; tests/numpy/test_inspection.py",
}

__all__ = ["CALLS", "ELSEWHERE", "FUNCTIONS", "Call", "public_functions"]
