"""Tables of collectives: of real compiled programs over eight devices, one row of CASES for each."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import inspect, lax
from atled.sharding import NamedSharding, P, with_sharding_constraint

HERE = pathlib.Path(__file__)


def loss(params, x, y):
    h = jnp.tanh(x @ params["w1"] + params["b1"])  # line: hidden
    return jnp.mean((h @ params["w2"] - y) ** 2)  # line: out


def data_parallel(params, x, y):
    return atled.tree.map(lambda p, g: p - 0.1 * g, params, atled.grad(loss)(params, x, y))


def tensor_parallel(x, w1, w2):
    h = jnp.tanh(x @ w1)
    return h @ w2  # line: down


def layers(x, ws):
    def body(x, w):
        return jnp.tanh(x @ w["a"]) @ w["b"], None  # line: layer

    return lax.scan(body, x, ws)[0]  # line: scan


def until(x, w):
    return lax.while_loop(lambda x: x[0, 0] < 10, lambda x: x @ w @ w.T, x)  # line: until


def constrained(x):
    return with_sharding_constraint(x, SHARDED[0](None, "data")) * 2  # line: constrained


def per_device(x):
    y = lax.psum(x, "data")  # line: psum
    z = lax.ppermute(x, "model", [(0, 1), (1, 0)])  # line: ppermute
    w = lax.all_gather(x, "data")  # line: all_gather
    u = lax.psum_scatter(x, "data", scatter_dimension=0, tiled=True)  # line: psum_scatter
    v = lax.all_to_all(x, "model", 0, 1, tiled=True)  # line: all_to_all
    return y + z + w.sum(0), u, v


def mapped(x):
    outs = (P(None, "model"), P("data", "model"), P(None, "model"))
    return atled.shard_map(
        per_device, mesh=MESH[0], in_specs=P(None, "model"), out_specs=outs, check_vma=False
    )(x)  # fmt: skip


def chosen(x):
    return lax.cond(x[0, 0] > 0, lambda x: x.sum(), lambda x: x.mean(), x)  # line: cond


def embedded(table, ids, y):
    return ((table[ids] - y) ** 2).sum()  # line: rows


def rolled(x):
    return jnp.roll(x, 1, 0)  # line: roll


def smoothed(x):
    return weights(x)


def weights(x):
    return atled.nn.softmax(x)  # line: weights


MAXIMA = "softmax over a dimension split over 'model': partial maxima"
SUMS = "softmax over a dimension split over 'model': partial sums"
MESH: list[Any] = []
SHARDED: list[Callable[..., NamedSharding]] = []


@pytest.fixture(autouse=True, scope="module")
def spread(mesh):
    MESH[:] = [mesh]
    SHARDED[:] = [lambda *spec: NamedSharding(mesh, P(*spec))]


def like(shape, *spec, dtype="float32"):
    return lambda: atled.ShapeDtypeStruct(shape, dtype, sharding=SHARDED[0](*spec))


def parameters():
    return {"w1": like((16, 32))(), "b1": like((32,))(), "w2": like((32, 8))()}


def stacked(*spec):
    return lambda: {"a": like((5, 16, 32), None, *spec)(), "b": like((5, 32, 16), None, *reversed(spec))()}


class Case(NamedTuple):
    """What a function is given, and the rows: kind, axes, devices, bytes, times, lines, words of the reason."""

    f: Callable[..., Any]
    arguments: tuple[Any, ...]
    rows: list[tuple[str, tuple[str, ...], int, int, int | None, list[str], str]]
    out: tuple[Any, ...] | None = None


CASES = {
    "data parallel step": Case(
        data_parallel,
        (parameters, like((64, 16), "data"), like((64, 8), "data")),
        [("all-reduce", ("data",), 4, 4 * 800, 1, ["hidden", "out"], "gradient: partial sums over 'data'")],
    ),
    "tensor parallel": Case(
        tensor_parallel,
        (like((64, 16), "data"), like((16, 32), None, "model"), like((32, 16), "model", None)),
        [("all-reduce", ("model",), 2, 4 * 16 * 16, 1, ["down"], "matmul contracts a dimension split over 'model'")],
    ),
    "one byte": Case(
        lambda x: -x,  # line: byte
        (like((64, 16), "data", dtype="int8"),),
        [("all-gather", ("data",), 4, 64 * 16, 1, ["byte"], "resharding")],
        out=(),
    ),
    "scan": Case(
        layers,
        (like((64, 16), "data"), stacked(None, "model")),
        [("all-reduce", ("model",), 2, 4 * 16 * 16, 5, ["layer"], "matmul contracts")],
    ),
    "while": Case(
        until,
        (like((64, 16), None), like((16, 32), None, "model")),
        [("all-reduce", ("model",), 2, 4 * 64 * 16, None, ["until"], "matmul contracts")],
    ),
    "output split otherwise": Case(
        lambda x: x * 2,  # line: otherwise
        (like((64, 16), "data"),),
        [("all-to-all", ("data",), 4, 4 * 16 * 16, 1, ["otherwise"], "resharding: 'data' moves to another dimension")],
        out=(None, "data"),
    ),
    "output whole": Case(
        lambda x: x * 2,  # line: whole
        (like((64, 16), "data"),),
        [("all-gather", ("data",), 4, 4 * 64 * 16, 1, ["whole"], "resharding: split over 'data' to replicated")],
        out=(),
    ),
    "argument passed on": Case(
        lambda x: x,
        (like((64, 16), ("data", "model")),),
        [("all-gather", ("data", "model"), 8, 4 * 64 * 16, 1, [], "resharding: split over 'data' and 'model' to")],
        out=(),
    ),
    "constraint": Case(
        constrained,
        (like((64, 16), "data"),),
        [("all-to-all", ("data",), 4, 4 * 16 * 16, 1, ["constrained"], "resharding")],
    ),
    "shard_map": Case(
        mapped,
        (like((8, 4), None, "model"),),
        [
            ("all-reduce", ("data",), 4, 4 * 8 * 2, 1, ["psum"], "written: lax.psum"),
            ("collective-permute", ("model",), 2, 4 * 8 * 2, 1, ["ppermute"], "written: lax.ppermute"),
            ("all-gather", ("data",), 4, 4 * 4 * 8 * 2, 1, ["all_gather"], "written: lax.all_gather"),
            ("reduce-scatter", ("data",), 4, 4 * 8 * 2, 1, ["psum_scatter"], "written: lax.psum_scatter"),
            ("all-to-all", ("model",), 2, 4 * 8 * 2, 1, ["all_to_all"], "written: lax.all_to_all"),
        ],
    ),
    "lookup and its gradient": Case(
        atled.grad(embedded),
        (like((1024, 16), "model"), like((64,), "data", dtype="int32"), like((64, 16), "data")),
        [
            ("all-reduce", ("model",), 2, 4 * 16 * 16, 1, ["rows"], "gather from an array split over 'model'"),
            ("all-reduce", ("data",), 4, 4 * 1024 * 16, 1, ["rows"], "gradient: partial sums over 'data'"),
        ],
    ),
    "neighbours": Case(
        rolled,
        (like((64, 16), "data"),),
        [("collective-permute", ("data",), 4, 4 * 16, 1, ["roll"], "neighbors along 'data' exchange")],
    ),
    "softmax": Case(
        smoothed,
        (like((64, 16), "data", "model"),),
        [
            ("all-reduce", ("model",), 2, 4 * 16, 1, ["weights"], MAXIMA),
            ("all-reduce", ("model",), 2, 4 * 16, 1, ["weights"], SUMS),
        ],
    ),
    "nothing": Case(lambda x: jnp.sin(x), (like((64, 16), "data"),), []),
}  # fmt: skip


def lines_of(names):
    text = HERE.read_text().splitlines()
    return [1 + next(i for i, row in enumerate(text) if row.endswith(f"# line: {name}")) for name in names]


def table(case):
    f = case.f if case.out is None else atled.jit(case.f, out_shardings=SHARDED[0](*case.out))
    return inspect.collectives(f)(*[a() for a in case.arguments])


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_rows(case):
    found = sorted(table(case).rows, key=lambda r: (r.line or 0, r.why))
    wanted = sorted([(*r[:5], lines_of(r[5]), r[6]) for r in case.rows], key=lambda r: (*r[5][:1], r[6]))
    got = [(r.kind, r.axes, r.devices, r.bytes, r.times, [n.number for n in r.lines]) for r in found]
    assert got == [row[:-1] for row in wanted]
    for row, want in zip(found, wanted, strict=True):
        assert want[-1] in row.why
        assert row.is_whole and row.is_written == row.why.startswith("written")
        assert not row.lines or (
            row.file == str(HERE) and row.text.endswith(HERE.read_text().splitlines()[row.line - 1].strip())
        )


def test_lines_are_those_of_this_program_though_an_equal_one_was_compiled():
    x = like((64,), "data")()
    first = inspect.collectives(lambda x: x.sum() * 3)(x)
    second = inspect.collectives(lambda x: x.sum() * 3)(x)
    assert second.rows[0].line == first.rows[0].line + 1


def test_loops_and_branches_are_named():
    [row] = table(CASES["scan"]).rows
    assert row.loop == f"the scan at {HERE.name}:{lines_of(['scan'])[0]}, 5 turns"
    rows = inspect.collectives(chosen)(like((64, 16), "data")()).rows
    assert [r.loop for r in rows if r.ops == ("reduce_sum",)] == [
        f"a branch of the cond at {HERE.name}:{lines_of(['cond'])[0]}"
    ] * 2
    backward = inspect.collectives(atled.grad(lambda ws, x: layers(x, ws).sum()))(
        stacked(None, "model")(), like((64, 16), "data")()
    )
    assert any([r.loop.startswith("the backward scan") for r in backward.rows])


def test_backward_of_the_users_own():
    def f(w, x):
        def part(w, x):
            return lax.psum(((x @ lax.all_gather(w, "data", tiled=True)) ** 2).sum(), "data")

        specs = (P("data"), P("data"))
        return atled.shard_map(part, mesh=MESH[0], in_specs=specs, out_specs=P(), check_vma=False)(w, x)

    rows = inspect.collectives(atled.grad(f))(like((16, 4), "data")(), like((64, 16), "data")()).rows
    assert [(r.kind, r.is_written) for r in rows] == [("all-gather", True), ("reduce-scatter", False)]
    assert rows[1].why == "backward pass of lax.psum_scatter on this line"


def test_part_of_an_axis():
    f = atled.jit(lambda x: x * 2, out_shardings=SHARDED[0]("model"))
    rows = inspect.collectives(f)(like((64, 16), "data")()).rows
    assert [(r.kind, r.over) for r in rows] == [
        ("collective-permute", "data, model"),
        ("all-gather", "part of data"),
    ]


def test_pmap_and_arrays():
    f = atled.pmap(lambda x: lax.psum(x, "i"), axis_name="i")
    [row] = inspect.collectives(f)(np.ones((8, 4), np.float32)).rows
    assert (row.kind, row.axes, row.devices, row.bytes, row.why) == ("all-reduce", ("i",), 8, 16, "written: lax.psum")


def test_one_device():
    found = inspect.collectives(jnp.sum)(jnp.ones(3))
    assert found.rows == () and str(found) == "sum runs on one device: no collectives"


def test_text(monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    text = str(table(CASES["scan"])).splitlines()
    assert text[0] == "1 collective in layers on Mesh('data': 4, 'model': 2)"
    assert text[2].split() == ["kind", "over", "devices", "bytes", "times", "where", "why"]
    assert text[3].split()[:7] == [
        "all-reduce",
        "model",
        "2",
        "1.0",
        "KiB",
        "5",
        f"{HERE.name}:{lines_of(['layer'])[0]}",
    ]
    column = text[2].index("why")
    assert text[3][column:].startswith("matmul") and text[3][column - 2 : column] == "  "
    assert text[4].strip().startswith('return jnp.tanh(x @ w["a"])')
    assert text[5].strip().startswith("in the scan at")
    assert text[-1] == "total over model  5.0 KiB on each device"


def test_text_of_equal_rows_and_unknown_turns():
    twice = inspect.collectives(lambda x: jnp.sort(x, 0))(like((64, 16), "data")())
    assert len(twice.rows) == 2 and "2 x 1" in str(twice)
    assert "total over model  at least 4.0 KiB" in str(table(CASES["while"]))


@pytest.mark.parametrize("width", [60, 80, 120])
def test_text_fits(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    rows = str(table(CASES["neighbours"])).splitlines()
    widest = max(map(len, rows[3:]))
    assert widest <= max(width, rows[2].index("why") + 40)


def test_html():
    found = table(CASES["data parallel step"])._repr_html_()
    assert "<td" in found and "all-reduce" in found and "params[&quot;w1&quot;]" in found


def test_expect(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    x = like((64,), "data")()
    found = inspect.expect(jnp.sum, all_reduce=1, all_gather=0)(x)
    assert found.count("all-reduce") == 1
    assert found.expect(reduce_scatter=0, all_to_all=0, collective_permute=0) is found
    with pytest.raises(
        AssertionError, match=r"inspect.expect: sum must have 0 all-reduce, 2 all-gather; got 1 all-reduce, 0"
    ) as e:
        inspect.expect(jnp.sum, all_reduce=0, all_gather=2)(x)
    assert "reduce_sum over a dimension split over 'data'" in str(e.value)


def test_not_a_function():
    with pytest.raises(TypeError, match=r"inspect.collectives: expected a function; got int\.\n  try: "):
        inspect.collectives(3)  # type: ignore[arg-type]
