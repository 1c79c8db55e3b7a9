"""Hooks for MkDocs: add pages from outside of docs/ and the API reference, and rewrite links.

Documents link to each other by their paths in the repository, so that the links work there, too. The hooks replace
these paths by the paths on the site.
"""

from __future__ import annotations

import ast
import os
import pathlib
import posixpath
import re
import runpy
import sys

from mkdocs.structure.files import File, Files

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

import reference  # noqa: E402

PAGES = {  # paths on the site, by path in the repository
    "README.md": "index.md",
    "ARCHITECTURE.md": "internals/architecture.md",
    "CONTRIBUTING.md": "internals/contributing.md",
    "CHANGELOG.md": "internals/changelog.md",
    "CODE_OF_CONDUCT.md": "internals/conduct.md",
    "SECURITY.md": "internals/security.md",
    "examples/README.md": "examples/index.md",
    **{f"examples/{f.name}": f"examples/{f.stem}.md" for f in (ROOT / "examples").glob("*.py")},
    **{f"examples/pictures/{f.name}": f"examples/pictures/{f.name}" for f in (ROOT / "examples/pictures").glob("*")},
}
NOTEBOOKS = runpy.run_path(str(ROOT / "scripts" / "notebooks"))["notebooks"]()  # in the directory of their chapters
FROM = {place: file for file, place in PAGES.items() if file != "README.md"}


def on_config(config):
    """Fill in the parts of the navigation that list all files: API reference, errors, examples."""
    examples = sorted(place for place in FROM if place.startswith("examples/") and place.endswith(".md"))
    errors = sorted((ROOT / "docs" / "errors").glob("*.md"))
    ours, ported = [[{name: f"api/{name}.md"} for name in part] for part in reference.parts()]
    parts = {
        "API reference": ["api/index.md", *ours, {reference.PORTED: ported}],
        "Errors": ["errors/README.md", *[f"errors/{f.name}" for f in errors if f.name != "README.md"]],
        "Examples": ["examples/index.md", *[place for place in examples if place != "examples/index.md"]],
    }
    config.nav = [
        {k: parts.get(k, v) for k, v in item.items()} if isinstance(item, dict) else item for item in config.nav
    ]
    return config


def on_files(files: Files, config) -> Files:
    """Add the pages, pictures and notebooks that are not in docs/."""
    for place, file in FROM.items():
        source = ROOT / file
        if source.suffix == ".py":
            files.append(File.generated(config, place, content=_example(source)))
        elif source.suffix == ".md":
            files.append(File.generated(config, place, content=source.read_text()))
        else:
            files.append(File.generated(config, place, abs_src_path=str(source)))
    for name, text in NOTEBOOKS.items():
        files.append(File.generated(config, f"tutorial/{name}", content=text))
    for name, text in reference.pages().items():
        files.append(File.generated(config, f"api/{name}", content=text))
    return files


def _example(file: pathlib.Path) -> str:
    """The page of an example: the summary of its docstring, the command to run it, its picture, and its source."""
    text = file.read_text()
    said = (ast.get_docstring(ast.parse(text)) or "").split("\n\n")[0]
    picture = (
        f"\n![What it draws](pictures/{file.stem}.png)\n"
        if (file.parent / f"pictures/{file.stem}.png").exists()
        else ""
    )
    return f"# {file.stem}\n\n{said}\n\n```\npython examples/{file.name}\n```\n{picture}\n```py\n{text}```\n"


def on_page_markdown(markdown: str, page, config, files: Files) -> str:
    """Rewrite links to files outside of docs/, or from such files, and link notebooks from their chapters."""
    here = page.file.src_uri
    book = posixpath.basename(here).replace(".md", ".ipynb")
    if here.startswith("tutorial/") and book in NOTEBOOKS:
        title, _, rest = markdown.partition("\n")
        markdown = f"{title}\n\n[This chapter as a notebook]({book}){{ download }}\n{rest}"
    at = posixpath.dirname(FROM.get(here, f"docs/{here}"))

    def write(match: re.Match) -> str:
        target = posixpath.normpath(posixpath.join(at, match[1]))
        place = PAGES.get(target) or (target.removeprefix("docs/") if target.startswith("docs/") else None)
        if place is None or match[1].startswith(("http:", "https:", "mailto:")):
            return match[0]
        return f"]({os.path.relpath(place, posixpath.dirname(here) or '.')}{match[2] or ''})"

    return markdown if here.startswith("api/") else re.sub(r"\]\(([^)#\s]+)(#[^)]*)?\)", write, markdown)
