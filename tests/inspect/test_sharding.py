"""Pictures of shardings, as text and as SVG."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import inspect
from atled.inspect import colors, svg_drawing, text_drawing
from atled.sharding import Mesh, NamedSharding, P


class Device:
    """A device of some other machine."""

    def __init__(self, number, process=0):
        self.id, self.process_index = number, process


def grid(shape, names, processes=1):
    count = int(np.prod(shape))
    devices = np.array([Device(i, i * processes // count) for i in range(count)], dtype=object)
    return Mesh(devices.reshape(shape), names)


def rows(picture):
    """The labels of the blocks, row by row."""
    found = [re.findall(r"│([^│]*)(?=│)", line) for line in str(picture).splitlines()]
    return [[cell.strip() for cell in row] for row in found if row]


PICTURES = {
    "both": ((64, 16), P("data", "model"), [["0", "1"], ["2", "3"], ["4", "5"], ["6", "7"]]),
    "rows": ((64, 16), P("data"), [["0,1"], ["2,3"], ["4,5"], ["6,7"]]),
    "columns": ((64, 16), P(None, "model"), [["0,2,4,6", "1,3,5,7"]]),
    "transposed": ((64, 16), P("model", "data"), [["0", "2", "4", "6"], ["1", "3", "5", "7"]]),
    "one dimension": ((64,), P(("model", "data")), [["0", "2", "4", "6", "1", "3", "5", "7"]]),
    "whole": ((64, 16), P(), [["0-7"]]),
    "scalar": ((), P(), [["0-7"]]),
    "four dimensions": ((2, 64, 8, 16), P(None, "model", None, "data"), [["0", "2", "4", "6"], ["1", "3", "5", "7"]]),
    "last of three": ((2, 64, 8), P(None, None, "model"), [["0,2,4,6", "1,3,5,7"]]),
    "first of three": ((2, 64, 8), P("model"), [["0,2,4,6"], ["1,3,5,7"]]),
}


@pytest.mark.parametrize("shape, spec, wanted", PICTURES.values(), ids=PICTURES)
def test_labels(mesh, shape, spec, wanted):
    assert rows(inspect.sharding(NamedSharding(mesh, spec), shape)) == wanted


def test_arrays(mesh):
    x = atled.device_put(jnp.ones((64, 16)), NamedSharding(mesh, P("data", "model")))
    assert str(inspect.sharding(x)).splitlines()[:5] == [
        "f32[64,16]: 8 parts of [16,8]",
        "over Mesh('data': 4, 'model': 2) as P('data', 'model')",
        "        0:8   8:16",
        "      ┌─────┬─────┐",
        " 0:16 │  0  │  1  │",
    ]
    like = atled.ShapeDtypeStruct((64, 16), "float32", sharding=x.sharding)
    assert str(inspect.sharding(like)) == str(inspect.sharding(x)) == repr(inspect.sharding(x))
    assert "whole on device 3" in str(inspect.sharding(atled.device_put(jnp.ones(3), atled.devices()[3])))


def test_more_dimensions_say_so(mesh):
    assert "of 3 dimensions: dimension 0 down, dimension 1 across" in str(
        inspect.sharding(NamedSharding(mesh, P("data", "model")), (4, 8, 16))
    )
    cube = grid((2, 2, 2), ("a", "b", "c"))
    found = inspect.sharding(NamedSharding(cube, P("a", "b", "c")), (8, 8, 8))
    assert rows(found) == [["0,1", "2,3"], ["4,5", "6,7"]]
    assert "also split: dimension 2 (2 parts); each block is 2 parts, on different devices" in str(found)


def test_several_processes():
    found = inspect.sharding(NamedSharding(grid((4, 2), ("x", "y"), processes=2), P("x")), (8, 8))
    assert rows(found) == [["p0:0,1"], ["p0:2,3"], ["p1:4,5"], ["p1:6,7"]]
    found = inspect.sharding(NamedSharding(grid((4, 2), ("x", "y"), processes=2), P("y")), (8, 8))
    assert rows(found) == [["p0:0,2 p1:4,6"], ["p0:1,3 p1:5,7"]]


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("color", [False, True])
@pytest.mark.parametrize("spec", [P("x", "y"), P(("x", "y")), P(None, ("x", "y")), P("y"), P()], ids=str)
def test_many_devices_fit(monkeypatch, width, color, spec):
    monkeypatch.setenv("COLUMNS", str(width))
    found = inspect.sharding(NamedSharding(grid((16, 32), ("x", "y")), spec), (4096, 8192), color=color)
    lines = re.sub(r"\x1b\[[^m]*m", "", str(found)).splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) <= 2 * text_drawing.ROWS + 6
    left_out = {P(("x", "y")): "497 of 512 rows are omitted", P("y"): "17 of 32 rows are omitted"}
    assert left_out.get(spec, "") in lines[-1]
    assert "511" in "".join(lines)


def test_color(monkeypatch, mesh):
    spread = NamedSharding(mesh, P("data"))
    assert "\x1b" not in str(inspect.sharding(spread, (8, 8)))  # the output of tests is no terminal
    assert str(inspect.sharding(spread, (8, 8), color=True)).count("\x1b[0m") == 3 * 4
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert "\x1b[" in str(inspect.sharding(spread, (8, 8)))
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in str(inspect.sharding(spread, (8, 8)))


def test_colors_differ():
    assert len({colors.ansi(i) for i in range(8)}) == 8
    assert len({colors.color(i) for i in range(512)}) > 500
    assert {colors.ansi(i) for i in range(512)} <= set(range(16, 232))


def test_svg(mesh, tmp_path):
    found = inspect.sharding(NamedSharding(mesh, P("data", "model")), (64, 16))
    root = ElementTree.fromstring(found.svg())
    space = "{http://www.w3.org/2000/svg}"
    fills = [r.get("fill") for r in root.iter(f"{space}rect")]
    assert len(fills) == len(set(fills)) == 8
    words = [t.text for t in root.iter(f"{space}text")]
    assert {"0", "7", "0:16", "8:16", found.title} <= set(words)
    assert found._repr_html_() == found.svg()
    found.save(tmp_path / "x.svg")
    assert (tmp_path / "x.svg").read_text(encoding="utf-8") == found.svg()


def test_svg_of_many_devices():
    found = inspect.sharding(NamedSharding(grid((512,), ("x",)), P("x")), (4096,)).svg()
    assert found.count("<rect") == svg_drawing.MOST - 1 and ">511<" in found


MISTAKES = {
    "no shape": (lambda s: inspect.sharding(s), TypeError, "inspect.sharding: a sharding needs the shape of an array"),
    "numpy": (lambda s: inspect.sharding(np.ones(3)), TypeError, "expected an array or a sharding; got ndarray"),
    "traced": (
        lambda s: atled.jit(inspect.sharding)(jnp.ones(3)),
        TypeError,
        "got a traced array, which has no sharding",
    ),
    "uneven": (lambda s: inspect.sharding(s, (6, 8)), ValueError, "inspect.sharding: dimension 0 of shape"),
}


@pytest.mark.parametrize("wrong, kind, message", MISTAKES.values(), ids=MISTAKES)
def test_mistakes(mesh, wrong, kind, message):
    with pytest.raises(kind, match=re.escape(message)):
        wrong(NamedSharding(mesh, P("data")))
