"""Warnings point at the user's line, and a loop does not repeat them."""

import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest

import atled.numpy as jnp

PROGRAMS = {  # in each, one line warns three times, and the line after it once
    "KeyReuseWarning": """
        from atled import random
        key = random.key(0)
        random.split(key)
        for _ in range(3):
            random.normal(key)
        random.normal(key)
    """,
    "ComplexWarning": """
        import atled.numpy as jnp
        z = jnp.array([1j])
        for _ in range(3):
            z.astype("float32")
        z.astype("float32")
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_line_warns_once(name, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(PROGRAMS[name]))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loop = 1 + next(i for i, line in enumerate(script.read_text().splitlines()) if line.startswith("for"))
    lines = [int(x.split(":")[1]) for x in done.stderr.splitlines() if f": {name}: " in x]
    assert lines == [loop + 1, loop + 2]


def test_filters_of_the_user_count():
    lost = np.exceptions.ComplexWarning
    z = jnp.array([1j])
    for _ in range(2):  # `always` repeats, also after the line has warned
        with warnings.catch_warnings(record=True, action="always") as found:
            for _ in range(3):
                z.astype("float32")
        assert [w.category for w in found] == [lost] * 3
    with warnings.catch_warnings(action="error"), pytest.raises(lost, match=r"test_warnings\.py"):
        z.astype("float32")
