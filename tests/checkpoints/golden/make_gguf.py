"""Writes `gguf_files/formats.gguf` and `expected.npz` with the `gguf` package (0.19): random blocks of all formats.

The tests read them with our reader. They never run this file, which needs `pip install gguf`.
"""

import pathlib

import gguf  # pyright: ignore[reportMissingImports]
import numpy as np

HERE = pathlib.Path(__file__).with_name("gguf_files")
Format = gguf.GGMLQuantizationType
BLOCKS = ["Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K"]  # with scales that may be infinite or NaN
rng = np.random.default_rng(0)
NUMBERS = rng.standard_normal((16, 64)).astype("float32") * 2.0 ** rng.integers(-20, 10, (16, 1)).astype("float32")
NUMBERS[1] = 0
NUMBERS[2] = np.round(NUMBERS[3] * 10) / 2  # ties
NUMBERS[4, :32] = -7.5


def metadata(writer: gguf.GGUFWriter) -> None:
    writer.add_string("text", "é漢\n\0")
    for bits in (8, 16, 32, 64):
        getattr(writer, f"add_uint{bits}")(f"uint{bits}", 2**bits - 1)
        getattr(writer, f"add_int{bits}")(f"int{bits}", -(2 ** (bits - 1)))
    writer.add_float32("float32", 0.1)
    writer.add_float64("float64", 0.1)
    writer.add_bool("bool", True)
    writer.add_array("integers", [1, -2, 3])
    writer.add_array("floats", [0.5, 0.1])
    writer.add_array("bools", [True, False])
    writer.add_array("strings", ["a", "", "漢"])
    writer.add_array("nested", [[1, 2], [3]])


def main() -> None:
    HERE.mkdir(exist_ok=True)
    writer = gguf.GGUFWriter(HERE / "formats.gguf", "golden")
    metadata(writer)
    expected: dict[str, np.ndarray] = {}
    for name in BLOCKS:
        count, size = gguf.GGML_QUANT_SIZES[Format[name]]
        data = rng.integers(0, 256, (2, 2, 256 // count * size), dtype=np.uint8)
        with np.errstate(all="ignore"):
            expected[name] = gguf.quants.dequantize(data, Format[name])
        writer.add_tensor(name, data, raw_dtype=Format[name])
    numbers = np.concatenate(
        [NUMBERS[:3].ravel(), np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 6e4, 1], "float32")]
    )
    for name, data in {
        "F32": numbers, "F16": numbers.astype("float16"), "I8": np.arange(-3, 3, dtype="int8").reshape(2, 1, 3),
        "I16": np.array([[-(2**15), 7]], "int16"), "I32": np.array([-(2**31), 2**24 + 1], "int32"),
        "I64": np.array([-(2**63), 2**53 + 1], "int64"), "F64": np.array([0.1, -1e300, 2**-1074]),
    }.items():  # fmt: skip
        writer.add_tensor(name, data)
        with np.errstate(over="ignore"):
            expected[name] = data.astype("float32")
    short = gguf.quants.quantize(numbers[:192].reshape(3, 64), Format.BF16)
    writer.add_tensor("BF16", short.view(np.uint8), raw_dtype=Format.BF16)
    expected["BF16"] = gguf.quants.dequantize(short, Format.BF16)
    writer.add_tensor("Q2_K", rng.integers(0, 256, (2, 84), dtype=np.uint8), raw_dtype=Format.Q2_K)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    expected["numbers"] = NUMBERS
    for name in ("Q8_0", "Q4_0", "Q4_1", "BF16"):
        expected[f"numbers as {name}"] = gguf.quants.quantize(NUMBERS, Format[name]).view(np.uint8)
    np.savez_compressed(HERE / "expected.npz", **expected)  # pyright: ignore[reportArgumentType]


if __name__ == "__main__":
    main()
