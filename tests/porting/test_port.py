"""`atled port` changes imports, and nothing else, and lists what is missing."""

import subprocess
import sys

import pytest

from atled.__main__ import main
from atled.jax.port import missing, ported

CASES = {
    "import jax": "import atled.jax as jax",
    "import jax.numpy as jnp": "import atled.jax.numpy as jnp",
    "import jax.numpy": "import atled.jax.numpy, atled.jax as jax",
    "import os, jax, sys as s": "import os, atled.jax as jax, sys as s",
    "from jax import grad, jit as j": "from atled.jax import grad, jit as j",
    "from jax.experimental.shard_map import shard_map": "from atled.jax.experimental.shard_map import shard_map",
    "from jax.lax import (\n  scan,  # loops\n  cond,\n)": "from atled.jax.lax import (\n  scan,  # loops\n  cond,\n)",
    "import jaxtyping, jaxlib": "import jaxtyping, jaxlib",
    "from jaxlib import xla": "from jaxlib import xla",
    "from . import jax": "from . import jax",
    "if 1:\n  import jax; x = 'import jax'  # jax": "if 1:\n  import atled.jax as jax; x = 'import jax'  # jax",
    "é = 'ü'; import jax": "é = 'ü'; import atled.jax as jax",
    "try:\n  import jax\nexcept ImportError: pass": "try:\n  import atled.jax as jax\nexcept ImportError: pass",
}


@pytest.mark.parametrize("before", CASES)
def test_only_imports_change(before):
    assert ported(before) == CASES[before] and ported(before + "\n") == CASES[before] + "\n"


def test_missing_names_are_listed_with_lines():
    source = (
        "import jax, jax.numpy as jnp\nfrom jax import lax, nothing\nfrom jax._src import nothing\nimport jax.pallas\n"
        "jnp.sin(lax.no_op(1)).astype(jnp.nope)\njax.nn.relu; jax.numpy.linalg.norm; jax.nn.nope\nx = jnp.pi.real\n"
    )
    assert [(m.line, m.name) for m in missing(source)] == [
        (2, "jax.nothing"), (3, "jax._src.nothing"), (4, "jax.pallas"), (5, "jax.lax.no_op"), (5, "jax.numpy.nope"),
        (6, "jax.nn.nope"),
    ]  # fmt: skip


def test_the_command(tmp_path, capsys):
    file = tmp_path / "program.py"
    file.write_text("import jax\nimport jax.numpy as jnp\nprint(jax.grad(jnp.sin)(0.0))\n")
    assert main(["port", str(file)]) == 0 and file.read_text().startswith("import jax\n")
    assert "+import atled.jax as jax" in capsys.readouterr().out
    assert main(["port", "--write", str(file)]) == 0 and "no names are missing" in capsys.readouterr().out
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=True)
    assert done.stdout == "1.0\n"
    file.write_text("import jax\njax.nope\n")
    assert main(["port", str(file)]) == 1 and "line 2: jax.nope" in capsys.readouterr().out
    file.write_text("import jax (\n")
    assert main(["port", str(file)]) == 2 and "program.py" in capsys.readouterr().err
