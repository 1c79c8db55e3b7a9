"""How arrays look: text like NumPy's, tables in notebooks, and nothing fetched but what is shown."""

from __future__ import annotations

import html.parser
import time

import numpy as np
import pytest

import atled
import atled.numpy as jnp

R = np.random.RandomState(0)
ARRAYS = [
    R.randn(3).astype("f4"), R.randn(2, 3), np.arange(24).reshape(2, 3, 4), np.asarray(2.5), np.asarray(7, "i4"),
    np.zeros((0, 3)), np.asarray([True, False]), np.asarray([1 + 2j, 3.5]), np.asarray([np.nan, np.inf, -1.0]),
    R.randn(2000), R.randn(40, 50).astype("f4"), R.randn(1001, 1), R.randn(7, 1, 300), np.arange(1000), np.arange(1001),
    R.randn(12, 11, 10).astype("f2"),
]  # fmt: skip


@pytest.mark.parametrize("host", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_text_is_numpys(host):
    x = jnp.asarray(host)
    assert str(x) == str(host) and f"{x}" == str(host)
    theirs = np.array2string(host, prefix="Array(", separator=", ")
    shape = f", shape={host.shape}" if host.size > 1000 or 0 in host.shape else ""
    assert repr(x) == f"Array({theirs}{shape}, dtype={host.dtype})"
    assert jnp.array_repr(host) == repr(x) and jnp.array_str(host) == str(x)


@pytest.mark.parametrize("options", [
    {"precision": 2}, {"threshold": 5}, {"threshold": 5, "edgeitems": 1}, {"suppress": True}, {"linewidth": 30},
    {"sign": "+"}, {"edgeitems": 20}, {"formatter": {"float": "<{:.1f}>".format}}, {"nanstr": "none"},
], ids=lambda o: "-".join(o))  # fmt: skip
def test_print_options(options):
    for host in ARRAYS[:3] + ARRAYS[8:11]:
        x = jnp.asarray(host)
        with jnp.printoptions(**options):
            assert str(x) == str(host)
            assert repr(x).startswith("Array(" + np.array2string(host, prefix="Array(", separator=", "))
    before = jnp.get_printoptions()
    jnp.set_printoptions(precision=3)
    try:
        assert repr(jnp.asarray(1 / 3)) == "Array(0.333, dtype=float32, weak_type=True)"
    finally:
        jnp.set_printoptions(**before)


def test_other_dtypes():
    assert repr(jnp.ones(2, "bfloat16")) == "Array([1, 1], dtype=bfloat16)"
    assert repr(jnp.ones(2000, "int4")) == "Array([1, 1, 1, ..., 1, 1, 1], shape=(2000,), dtype=int4)"
    assert repr(atled.random.key(0)) == str(atled.random.key(0)) == "Array((), dtype=key<fry>)"
    assert repr(atled.random.split(atled.random.key(0), 3)) == "Array((3,), dtype=key<fry>)"


def test_huge_arrays_are_shown_at_once(monkeypatch):
    x = jnp.zeros((30_000, 10_000), "int8").block_until_ready()
    y = jnp.zeros(3 * 10**8, "int4").block_until_ready()  # read by way of the device
    repr(jnp.zeros((300, 100), "int8")), repr(y), y._repr_html_()
    fetched = []
    kind = type(x)
    monkeypatch.setattr(kind, "_on_host", lambda a, f=kind._on_host: fetched.append(a.size) or f(a))
    for a in (x, y):
        for show in (repr, str, lambda a: a._repr_html_()):
            times = []
            for _ in range(3):  # the machine may have other things to do
                start = time.perf_counter()
                assert len(show(a)) < 30_000
                times.append(time.perf_counter() - start)
            assert min(times) < 0.05
    assert max(fetched[9:]) < 100, "of the second array, only the corners were read"
    assert repr(x).endswith("shape=(30000, 10000), dtype=int8)")


def test_corners_of_many_axes():
    x = jnp.zeros((4,) * 12, "int8")
    assert repr(x) == str(x) == f"Array(shape={(4,) * 12}, dtype=int8)"
    assert "<pre" not in x._repr_html_()


def test_what_is_gone():
    x = jnp.ones(3)
    atled.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert repr(x) == str(x) == "Array(f32[3], deleted)"
    assert "deleted" in x._repr_html_()


def test_tracers_say_their_type_and_transformation():
    seen = []
    note = lambda x: seen.append((repr(x), str(x))) or x
    atled.jit(note)(jnp.ones(3)), atled.vmap(note)(jnp.ones((2, 3))), atled.grad(note)(1.0)
    texts = ["Traced<f32[3]> by jit", "Traced<f32[3]> by vmap", "Traced<~f32[]> by differentiation"]
    assert seen == [(t, t) for t in texts]


# -- notebooks --------------------------------------------------------------------------------------------------------


class Table(html.parser.HTMLParser):
    """The rows of cells, and all text; complains about tags that are not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.text, self.open = "", []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def test_tables():
    found = Table(jnp.asarray([[1.5, 2.0], [3.0, -4.25]])._repr_html_())
    assert found.rows == [["", "0", "1"], ["0", "1.5", "2"], ["1", "3", "-4.25"]]
    assert "f32[2,2] · 16 bytes · cpu:0" in found.text
    assert Table(jnp.arange(3)._repr_html_()).rows == [["0", "1", "2"], ["0", "1", "2"]]


def test_digits_of_tables():
    x = jnp.asarray([1 / 3, 1234567.0, -1e-9, np.inf])
    assert Table(x._repr_html_()).rows[1] == ["0.33333", "1.2346e+06", "-1e-09", "inf"]
    assert Table(jnp.asarray([1 / 3 - 2j])._repr_html_()).rows[1] == ["0.33333-2j"]
    with jnp.printoptions(precision=2):
        assert Table(jnp.asarray([1 / 3, 2.0])._repr_html_()).rows[1] == ["0.33", "2."]


def test_large_tables_show_both_ends():
    rows = Table(jnp.arange(12_000).reshape(1000, 12)._repr_html_()).rows
    assert [r[0] for r in rows] == ["", *map(str, range(5)), "…", *map(str, range(995, 1000))]
    assert rows[0] == ["", *map(str, range(5)), "…", *map(str, range(7, 12))]
    assert rows[1][1:] == ["0", "1", "2", "3", "4", "…", "7", "8", "9", "10", "11"]
    assert set(rows[6]) == {"…"} and rows[-1][-1] == "11999"


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 2, 2), (1,), (11,), (12,), (3, 1)])
def test_every_shape_is_well_formed(shape):
    found = Table(jnp.ones(shape)._repr_html_())
    assert "Array" in found.text and (not found.rows or len({len(r) for r in found.rows}) == 1)


def test_text_is_escaped():
    with jnp.printoptions(formatter={"float": lambda v: "<b>&"}):
        for x in (jnp.ones(2), jnp.ones((2, 2, 2))):
            assert "<b>&" not in x._repr_html_().replace("<b>Array", "") and "&lt;b&gt;&amp;" in x._repr_html_()
