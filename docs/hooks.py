"""What the site does to pages that link out of docs/: pictures come along, code is named.

In a checkout a link such as ``../benchmarks/catalogue/make.py`` opens the file; the site has no
such page, and shows the path instead.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

_ROOT = Path(__file__).resolve().parents[1]
_DOCS = _ROOT / "docs"
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(((?:\.\./)+[^)#\s]+)(?:#[^)\s]*)?\)")


def _outside(page: str, target: str) -> Path | None:
    """The file of the repository, relative to its root, that a link out of docs/ names."""
    path = (_DOCS / page).parent.joinpath(target).resolve()
    inside = path.is_relative_to(_DOCS) or not path.is_relative_to(_ROOT) or not path.exists()
    return None if inside else path.relative_to(_ROOT)


def on_files(files: Files, config: Any) -> Files:
    """Add the tutorial as a page, and the pictures that pages show from elsewhere."""
    tutorial = as_page((_DOCS / "tutorial.py").read_text("utf-8"))
    files.append(File.generated(config, "tutorial.md", content=tutorial))
    for page in list(files.documentation_pages()):
        for mark, _, target in _LINK.findall(page.content_string):
            path = _outside(page.src_uri, target)
            uri = f"figures/{path}"
            if mark and path is not None and files.get_file_from_path(uri) is None:
                files.append(File.generated(config, uri, abs_src_path=str(_ROOT / path)))
    return files


def as_page(cells: str) -> str:
    """A script of ``# %%`` cells as Markdown: text cells as they are, code cells fenced."""
    parts = []
    for cell in re.split(r"^# %%", cells, flags=re.MULTILINE)[1:]:
        kind, _, body = cell.partition("\n")
        if "[markdown]" in kind:
            parts.append(re.sub(r"^# ?", "", body, flags=re.MULTILINE).strip())
        else:
            parts.append(f"```python\n{body.strip()}\n```")
    return "\n\n".join(parts).replace("  # noqa: E402", "") + "\n"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point pictures at their copies, and name other files of the repository."""

    def replace(found: re.Match[str]) -> str:
        mark, text, target = found.groups()
        path = _outside(page.file.src_uri, target)
        if path is None:
            return found[0]
        if mark:
            return f"![{text}]({'../' * page.file.src_uri.count('/')}figures/{path})"
        return text if str(path) in text else f"{text} (`{path}`)"

    return _LINK.sub(replace, markdown.replace("](tutorial.py)", "](tutorial.md)"))
