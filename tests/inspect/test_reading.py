"""Forms of text that other platforms and larger programs have: groups, start and done pairs, combined shapes."""

from __future__ import annotations

import pytest

from atled.inspect import hlo_parser, replica_groups
from atled.inspect.collective_parser import read

GROUPS = {
    "replica_groups={{0,1},{2,3}}, use_global_device_ids=true": [(0, 1), (2, 3)],
    "replica_groups={}": [(0, 1, 2, 3, 4, 5, 6, 7)],
    "channel_id=1": [(0, 1, 2, 3, 4, 5, 6, 7)],
    "replica_groups=[2,4]<=[8], dimensions={0}": [(0, 1, 2, 3), (4, 5, 6, 7)],
    "replica_groups=[2,4]<=[4,2]T(1,0)": [(0, 2, 4, 6), (1, 3, 5, 7)],
    "replica_groups=[4,2]<=[2,2,2]T(2,1,0)": [(0, 4), (2, 6), (1, 5), (3, 7)],
    "replica_groups=mesh['a'=4,'b'=2] {'a'}, dimensions={0}": [(0, 2, 4, 6), (1, 3, 5, 7)],
    "replica_groups=mesh['a'=4,'b'=2] {'b','a'}": [(0, 2, 4, 6, 1, 3, 5, 7)],
    "replica_groups=mesh['a'=4,'b'=2] {'a':(1)2}": [(0, 4), (1, 5), (2, 6), (3, 7)],
    "replica_groups=mesh['a'=4,'b'=2] {'a':(2)2}": [(0, 2), (1, 3), (4, 6), (5, 7)],
    "replica_groups=mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'a'}": [(0, 1), (2, 3), (4, 5), (6, 7)],
    "replica_groups=mesh['a'=4], device_ids=(3,1,2,0) {'a'}": [(3, 1, 2, 0)],
}


@pytest.mark.parametrize("text, wanted", GROUPS.items())
def test_groups(text, wanted):
    assert sorted(replica_groups.replica_groups(f"channel_id=1, {text}", 8)) == sorted(wanted)


SPANS = {
    "replica_groups={{0,1},{2,3},{4,5},{6,7}}": ("model", 2),
    "replica_groups={{0,2,4,6},{1,3,5,7}}": ("data", 4),
    "replica_groups={}": ("data, model", 8),
    "replica_groups={{0,2},{1,3},{4,6},{5,7}}": ("part of data", 2),
    "replica_groups={{0,3},{1,2},{4,7},{5,6}}": ("part of data, model", 2),
    "source_target_pairs={{0,1},{1,0},{2,3},{3,2}}": ("model", 2),
    "source_target_pairs={{0,2},{2,4},{4,6},{6,0}}": ("data", 4),
    "source_target_pairs={{0,0},{1,1}}": ("nothing", 1),
}


@pytest.mark.parametrize("text, wanted", SPANS.items())
def test_spans(mesh, text, wanted):
    found = replica_groups.span(f", channel_id=1, {text}, metadata={{}}", mesh)
    assert (str(found), found.devices) == wanted


SIZES = {
    "f32[]": 4,
    "f32[16,32]{1,0:T(8,128)S(1)}": 2048,
    "(bf16[8]{0}, s8[3], /*index=2*/pred[5]{0})": 16 + 3 + 5,
    "(f8e4m3fn[16], s4[3], c64[2], token[])": 16 + 2 + 16,
    "f32[<=8,2]": 64,
}


@pytest.mark.parametrize("shape, wanted", SIZES.items())
def test_sizes(shape, wanted):
    assert hlo_parser.size(shape) == wanted


ASYNC = """HloModule step, num_partitions=8

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %z = f32[] add(f32[] %x, f32[] %y)
}

%wrapped (p: f32[16]) -> f32[4] {
  %p = f32[16]{0} parameter(0)
  ROOT %rs = f32[4]{0} reduce-scatter(%p), channel_id=4, replica_groups={{0,2,4,6},{1,3,5,7}}, to_apply=%add
}

ENTRY %main (a: f32[16], b: f32[4]) -> f32[16] {
  %a = f32[16] parameter(0), metadata={op_name="a"}
  %b = f32[4]{0} parameter(1), metadata={op_name="b"}
  %r = (f32[16],f32[4]) all-reduce-start(%a,%b), to_apply=%add, replica_groups=[4,2]<=[8], metadata={DOT AT7}
  %s = (f32[16]{0}, f32[4]{0}) all-reduce-done(%r)
  %s0 = f32[16]{0} get-tuple-element((f32[16]{0}, f32[4]{0}) %s), index=0, metadata={AT7}
  %s1 = f32[4]{0} get-tuple-element((f32[16]{0}, f32[4]{0}) %s), index=1, metadata={AT9}
  %g = (f32[4]{0}, f32[16]{0}) all-gather-start(%s1), channel_id=2, replica_groups=[2,4]<=[4,2]T(1,0), dimensions={0}
  %h = f32[16]{0} all-gather-done(%g)
  %c = (f32[16]{0}, f32[16]{0}, u32[], u32[]) collective-permute-start(%h), source_target_pairs={{0,1},{1,0}}
  %d = f32[16]{0} collective-permute-done(%c)
  %q = ((f32[16]{0}), f32[4]{0}, s32[]) async-start(%d), calls=%wrapped
  %t = f32[4]{0} async-done(%q), calls=%wrapped
  ROOT %o = f32[16]{0} add(%h, %d)
}
""".replace("DOT", 'op_name="f/dot_general"').replace("AT", 'source_file="/a/train.py" source_line=')


def test_pairs_count_once(mesh):
    rows = list(read(ASYNC, mesh))
    assert [(r.kind, r.over, r.bytes) for r in rows] == [
        ("all-reduce", "model", 80),
        ("all-gather", "data", 64),
        ("collective-permute", "model", 64),
        ("reduce-scatter", "data", 64),
    ]
    assert [str(line) for line in rows[0].lines] == ["train.py:7", "train.py:9"]
    assert rows[0].why == "matmul contracts a dimension split over 'model': partial sums are combined"


def test_no_mesh_no_collectives():
    assert list(read(ASYNC, None)) == []
