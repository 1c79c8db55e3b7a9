"""A directory that another process removed while it was empty is made again."""

from atled.checkpoints.storage import Local


def test_a_directory_that_went_away_is_made_again(tmp_path):
    where = Local(tmp_path / "c")
    where.prepare()
    where.leave()  # what another process does whose save failed
    assert not (tmp_path / "c").exists()
    where.write("0.data", [b"abc"])
    assert (tmp_path / "c" / "0.data").read_bytes() == b"abc"
