"""Writes `docs/errors/`: a page for each mistake of the gallery, and the list of them.

JAX's messages, and Flax's to mistakes with models, are kept in `jax_messages.json`; `python tests/errors/pages.py
--jax` collects them again.
"""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

from gallery import GALLERY, IMPORTS, Mistake
from mistake import NO_PEER

HERE = pathlib.Path(__file__).parent
FOLDER = HERE.parent.parent / "docs" / "errors"
MESSAGES = HERE / "jax_messages.json"


def of_jax(mistake: Mistake) -> str:
    """What JAX says to the same mistake: the last lines that a user sees, or what happened instead."""
    if mistake.jax == NO_PEER:
        return ""
    code = mistake.jax or mistake.bad
    text = (IMPORTS + textwrap.dedent(code)).replace("from atled", "from jax").replace("atled", "jax")
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "train.py"
        script.write_text(text)
        done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300)
    if done.returncode == 0:
        return "(no error)"
    lines = [line for line in done.stderr.replace(folder + "/", "").splitlines() if line.strip()]
    starts = [i for i, line in enumerate(lines) if re.match(r"[\w.]+(Error|Exception|Interrupt)\b", line)]
    found = lines[starts[-1] :] if starts else lines[-3:]
    found = [line for line in found if not line.startswith(("---", "For simplicity, JAX"))]
    text = "\n".join(found[:30])
    return re.sub(r"(?<=object id )\d+", "...", re.sub(r"0x[0-9a-f]+", "0x...", text))


def of_atled(mistake: Mistake) -> str:
    """What we say."""
    from test_gallery import run

    error, _ = run(mistake.bad)
    text = f"{type(error).__name__}: {error}"
    return re.sub(r"0x[0-9a-f]+", "0x...", text)


def page(mistake: Mistake) -> str:
    """The page of one mistake."""
    theirs = json.loads(MESSAGES.read_text()).get(mistake.name, "(not collected)")
    peer = "Flax 0.12.8" if "import nnx" in mistake.jax else "JAX 0.10.2"
    said = f"\n{peer} says:\n\n```text\n{theirs}\n```\n" if mistake.jax != NO_PEER else ""
    bad, good = (textwrap.dedent(code).strip() for code in (mistake.bad, mistake.good))
    return f"""\
# {mistake.title}

```py
{bad}
```

```text
{of_atled(mistake)}
```

{textwrap.fill(mistake.why, 120)}

This works:

```python
{IMPORTS}
{good}
```
{said}"""


def index() -> str:
    """The list of pages."""
    rows = "\n".join([f"- [{m.title}]({m.name}.md)" for m in GALLERY])
    return f"# Errors\n\nThe most common mistakes, the error message for each, and what works instead.\n\n{rows}\n"


def main() -> None:
    """Write the pages."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    messages = json.loads(MESSAGES.read_text()) if MESSAGES.exists() else {}
    for mistake in GALLERY:
        if "--jax" in sys.argv or mistake.name not in messages:
            messages[mistake.name] = of_jax(mistake)
    MESSAGES.write_text(json.dumps({m.name: messages[m.name] for m in GALLERY}, indent=1) + "\n")
    for old in FOLDER.glob("*.md"):
        old.unlink()
    for mistake in GALLERY:
        (FOLDER / f"{mistake.name}.md").write_text(page(mistake))
    (FOLDER / "README.md").write_text(index())


if __name__ == "__main__":
    main()
