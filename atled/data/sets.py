"""Public data sets, as NumPy arrays and text, and a model, from local files; these functions download nothing.

The command `atled data` writes the files, in the formats of their authors, to one directory for each set below
`$ATLED_DATA` or `~/.cache/atled/data`; `directory` overrides both. A file is read only if its SHA-256 is the one in
`FILES`; files may be compressed with gzip.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import io
import os
import pathlib
import zlib
from typing import Any

import numpy as np

from atled.core import errors

__all__ = [
    "bible_english_spanish", "cifar10", "digits", "fashion_mnist", "greek_new_testament", "home", "mnist",
    "parsed_cifar", "parsed_idx", "read_idx", "shakespeare", "smollm2", "sotu", "wordnet",
]  # fmt: skip
__dir__ = __all__.copy


Path = str | os.PathLike[str]

# SHA-256 of the content of each file, decompressed.
FILES: dict[str, dict[str, str]] = {
    "mnist": {
        "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    },
    "fashion_mnist": {
        "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    },
    "cifar10": {
        "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
        "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
        "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
        "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
        "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
        "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
    },
    "digits": {
        "digits.csv": "6ebb3d2fee246a4e99363262ddf8a00a3c41bee6014c373ed9d9216ba7f651b8",
    },
    "shakespeare": {
        "shakespeare.txt": "b3b8e7fa68c8e0239830de97c1b0be22ad3991eb2169c1f57aa5eb5cb9bd8f14",
    },
    "sotu": {
        "sotu.txt": "5553bf6c6ca87b6baa8beed578d0b3424967394864d6c98d03c9621614a1f081",
    },
    "bible_english_spanish": {
        "english.txt": "7d357d8a8950be87a9fcc858487e5cd78723137ab0d1bd8f8568b2e6c7a0d08b",
        "spanish.txt": "41d430838586a06065aa67185e2c7f4f5a10c280f45092effe9dd1f90e4a96a3",
    },
    "greek_new_testament": {
        "morphgnt.txt": "f95833b147bb182786750700423625528dcb38f1508ea7585bce52e730a352f9",
    },
    "wordnet": {
        "data.noun": "fea17d2f9656611334eac790e5d69e47645fa180c4aa481fb4cd9b3520754ca2",
    },
    "smollm2": {
        "SmolLM2-135M-Instruct.Q4_1.gguf": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    },
}

_IDX = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
NOUNS = (
    "Tops", "act", "animal", "artifact", "attribute", "body", "cognition", "communication", "event", "feeling", "food",
    "group", "location", "motive", "object", "person", "phenomenon", "plant", "possession", "process", "quantity",
    "relation", "shape", "state", "substance", "time",
)  # fmt: skip


def home() -> pathlib.Path:
    """The default directory of data sets."""
    return pathlib.Path(os.environ.get("ATLED_DATA") or pathlib.Path.home() / ".cache" / "atled" / "data")


# -- images -----------------------------------------------------------------------------------------------------------


def mnist(directory: Path | None = None) -> dict[str, dict[str, np.ndarray]]:
    """Handwritten digits: 60 000 in `train` and 10 000 in `test`, each with `image` u8[n,28,28] and `label` u8[n]."""
    return _idx_set("mnist", directory)


def fashion_mnist(directory: Path | None = None) -> dict[str, dict[str, np.ndarray]]:
    """Pictures of clothes in 10 classes, in the same layout as `mnist`."""
    return _idx_set("fashion_mnist", directory)


def _idx_set(name: str, directory: Path | None) -> dict[str, dict[str, np.ndarray]]:
    def part(start: str) -> dict[str, np.ndarray]:
        files = {"image": f"{start}-images-idx3-ubyte", "label": f"{start}-labels-idx1-ubyte"}
        return {key: parsed_idx(_read(name, file, directory), file) for key, file in files.items()}

    return {"train": part("train"), "test": part("t10k")}


def cifar10(directory: Path | None = None) -> dict[str, dict[str, np.ndarray]]:
    """Photographs in 10 classes: 50 000 in `train` and 10 000 in `test`, `image` u8[n,32,32,3] and `label` u8[n].

    The files are those of the binary version: `data_batch_1.bin` to `data_batch_5.bin`, and `test_batch.bin`.
    """
    train = [parsed_cifar(_read("cifar10", f"data_batch_{i}.bin", directory)) for i in range(1, 6)]
    test = parsed_cifar(_read("cifar10", "test_batch.bin", directory))
    return {"train": {key: np.concatenate([part[key] for part in train]) for key in test}, "test": test}


def digits(directory: Path | None = None) -> dict[str, np.ndarray]:
    """1 797 small handwritten digits: `image` u8[n,8,8] from 0 to 16, and `label` u8[n].

    The file is part of scikit-learn, and is also found in an installed scikit-learn.
    """
    spec = importlib.util.find_spec("sklearn")
    more = [pathlib.Path(p) / "datasets" / "data" for p in (spec.submodule_search_locations or [])] if spec else []
    text = _read("digits", "digits.csv", directory, more)
    table = np.loadtxt(io.BytesIO(text), delimiter=",", dtype=np.uint8)
    return {"image": table[:, :-1].reshape(-1, 8, 8), "label": table[:, -1].copy()}


# -- text -------------------------------------------------------------------------------------------------------------


def shakespeare(directory: Path | None = None) -> str:
    """The works of Shakespeare, one after the other: 5 million characters, ASCII."""
    return _read("shakespeare", "shakespeare.txt", directory).decode()


def sotu(directory: Path | None = None) -> str:
    """The addresses on the State of the Union from 1790 to 2021, each below a line with year and president."""
    return _read("sotu", "sotu.txt", directory).decode()


def bible_english_spanish(directory: Path | None = None) -> list[tuple[str, str]]:
    """Verses of the Bible in English (King James) and in Spanish (Reina-Valera 1909): 30 902 pairs."""
    english, spanish = (
        _read("bible_english_spanish", f"{language}.txt", directory).decode().split("\n")[:-1]
        for language in ("english", "spanish")
    )
    return list(zip(english, spanish, strict=True))


def greek_new_testament(directory: Path | None = None) -> dict[str, np.ndarray]:
    """The 137 554 words of the Greek New Testament (MorphGNT), as arrays with one entry per word.

    `verse` is a number with two decimal digits each for book, chapter and verse; `part` is one of 13 parts of speech;
    `parsing` encodes person, tense, voice, mood, case, number, gender and degree; `text` includes punctuation; `word`,
    `normalized` and `lemma` do not.
    """
    lines = _read("greek_new_testament", "morphgnt.txt", directory).decode().split("\n")[:-1]
    columns = list(zip(*[line.split(" ") for line in lines], strict=True))
    keys = ("verse", "part", "parsing", "", "text", "word", "normalized", "lemma")
    fields = {key: np.array(column) for key, column in zip(keys, columns, strict=True) if key}
    return {**fields, "verse": fields["verse"].astype(np.int32)}


# -- graphs -----------------------------------------------------------------------------------------------------------


def wordnet(directory: Path | None = None) -> dict[str, Any]:
    """The nouns of WordNet 3.0: 82 115 nodes with one of 26 classes each, and 231 535 edges of 18 kinds.

    `label` u8[n] is the class, an index into `NOUNS`; `words` is a list of tuples of synonyms, `gloss` a list of
    definitions; `edges` i32[m,2] has first and second node of each edge, and `kind` u8[m] its kind, an index into
    `kinds`: `@` leads to a more general noun, `~` to a more specific one, and so on.
    """
    text = _read("wordnet", "data.noun", directory).decode()
    lines = [line for line in text.split("\n")[:-1] if not line.startswith("  ")]  # the license
    node = {line[:8]: i for i, line in enumerate(lines)}
    label, words, gloss, edges = [], [], [], []
    for i, line in enumerate(lines):
        fields, _, description = line.partition(" | ")
        parts = fields.split(" ")
        count = int(parts[3], 16)
        label.append(int(parts[1]) - 3)
        words.append(tuple([word.replace("_", " ") for word in parts[4 : 4 + 2 * count : 2]]))
        gloss.append(description.strip())
        start = 5 + 2 * count  # kind, node, part of speech and words of each edge follow
        ends = zip(parts[start::4], parts[start + 1 :: 4], parts[start + 2 :: 4])
        edges.extend([(kind, i, node[end]) for kind, end, speech in ends if speech == "n"])
    kinds = sorted({kind for kind, _, _ in edges})
    return {
        "label": np.array(label, np.uint8),
        "words": words,
        "gloss": gloss,
        "edges": np.array([edge[1:] for edge in edges], np.int32),
        "kind": np.array([kinds.index(kind) for kind, _, _ in edges], np.uint8),
        "kinds": kinds,
    }


# -- models -----------------------------------------------------------------------------------------------------------


def smollm2(directory: Path | None = None) -> pathlib.Path:
    """The file of SmolLM2-135M-Instruct, a small language model that answers, in GGUF's format Q4_1, 98 MB.

    `models.load(data.sets.smollm2())` returns the model and its tokenizer.
    """
    (file,) = FILES["smollm2"]
    path = _find("smollm2", [file], directory)
    with path.open("rb") as opened:
        _check("smollm2", file, path, hashlib.file_digest(opened, "sha256").hexdigest())
    return path


# -- formats ----------------------------------------------------------------------------------------------------------


def read_idx(path: Path) -> np.ndarray:
    """The array in a file of the idx format, which MNIST uses, compressed with gzip or not.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as there:
    ...     _ = pathlib.Path(there, "labels").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 5, 0, 4]))
    ...     read_idx(f"{there}/labels")
    array([5, 0, 4], dtype=uint8)
    """
    file = pathlib.Path(path)
    if not file.is_file():
        raise FileNotFoundError(errors.explained(f"sets.read_idx: there is no file {file}."))
    return parsed_idx(_content(file), str(file))


def parsed_idx(data: bytes, name: str = "the file") -> np.ndarray:
    """The array in the bytes of an idx file, which has a dtype code, the rank, the shape and the numbers."""
    dtype = _IDX.get(data[2]) if len(data) >= 4 and data[:2] == b"\0\0" else None
    if dtype is None:
        raise ValueError(
            errors.explained(f"sets.read_idx: {name} must begin as an idx file: with the bytes 0, 0, dtype, rank.")
        )
    start = 4 + 4 * data[3]
    shape = [int.from_bytes(data[i : i + 4], "big") for i in range(4, start, 4)]
    expected_size = start + int(np.prod(shape, dtype=object)) * np.dtype(dtype).itemsize
    if len(data) != expected_size:
        raise ValueError(
            errors.explained(f"sets.read_idx: {name} must have {expected_size} bytes for {shape}; it has {len(data)}.")
        )
    array = np.frombuffer(data, dtype, offset=start).reshape(shape)
    return array.astype(array.dtype.newbyteorder("="))


def parsed_cifar(data: bytes) -> dict[str, np.ndarray]:
    """The pictures and labels in the bytes of a CIFAR-10 file: for each a label, then 3 planes of 32 x 32 bytes."""
    if len(data) % 3073:
        raise ValueError(
            errors.explained(f"sets.cifar10: a file must have 3073 bytes for each picture; it has {len(data)}.")
        )
    table = np.frombuffer(data, np.uint8).reshape(-1, 3073)
    pictures = table[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return {"image": np.ascontiguousarray(pictures), "label": table[:, 0].copy()}


# -- files ------------------------------------------------------------------------------------------------------------


def _read(name: str, file: str, directory: Path | None, more: list[pathlib.Path] | None = None) -> bytes:
    """The content of a file of a data set; raises if its SHA-256 is wrong."""
    path = _find(name, [file, f"{file}.gz"], directory, more)
    data = _content(path)
    _check(name, file, path, hashlib.sha256(data).hexdigest())
    return data


def _find(name: str, files: list[str], directory: Path | None, more: list[pathlib.Path] | None = None) -> pathlib.Path:
    """The first of these files that exists."""
    root = home() if directory is None else pathlib.Path(directory)
    places = [root / name, root, *(more or [])]
    path = next((p / f for p in places for f in files if (p / f).is_file()), None)
    if path is None:
        file = " (or ".join(files) + ")" * (len(files) > 1)
        raise FileNotFoundError(
            errors.explained(
                f"sets.{name}: there is no {file} in {' or '.join(map(str, places))}.",
                f"atled data {name}{'' if directory is None else f' --to {root}'}, once.",
            )
        )
    return path


def _check(name: str, file: str, path: pathlib.Path, digest: str) -> None:
    """Raise unless the SHA-256 of a file's content is the right one."""
    if digest != FILES[name][file]:
        raise ValueError(
            errors.explained(
                f"sets.{name}: {path} is damaged or another version: its content has SHA-256 {digest}, expected "
                f"{FILES[name][file]}.",
                f"remove it, and run atled data {name}.",
            )
        )


def _content(path: pathlib.Path) -> bytes:
    """The bytes of a file, decompressed if they are compressed with gzip."""
    data = path.read_bytes()
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        digest = hashlib.sha256(data).hexdigest()
        raise ValueError(
            errors.explained(f"sets: {path} (SHA-256 {digest}) cannot be decompressed: {error}", "get it anew.")
        ) from None
