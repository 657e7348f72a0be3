"""Documents say what the code does: snippets run, links lead somewhere, tables are generated."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from tests.milp_planner.cli.conftest import CLUSTER, MODEL

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
_SNIPPET = re.compile(r"```python\n(.*?)```", re.DOTALL)
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", ["README.md", "docs/guide.md"])
def test_python_snippets_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python a reader would copy works as it stands, on a small model."""
    (tmp_path / "model.yaml").write_text(MODEL.replace("items", "item_id"))
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "today.csv").write_text(
        "table,mode,ratio,sharding_type,ranks\nusers,HBM_ONLY,,table_wise,0\n"
        "item_id,HBM_ONLY,,row_wise,all\nads,HBM_ONLY,,row_wise,all\n"
    )
    monkeypatch.chdir(tmp_path)
    snippets = [s for s in _SNIPPET.findall((ROOT / page).read_text()) if "torchrec" not in s]
    assert snippets
    for number, snippet in enumerate(snippets):
        (tmp_path / f"snippet_{number}.py").write_text(snippet)
        runpy.run_path(str(tmp_path / f"snippet_{number}.py"))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link of a page names a file of the project."""
    for target in _LINK.findall(page.read_text(encoding="utf-8")):
        if "://" not in target and not target.startswith("mailto:"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_results_table_is_generated() -> None:
    """README's figures are those of the newest stored result, not typed."""
    from benchmarks import readme_table

    assert readme_table.main(["--check"]) == 0, "run: python benchmarks/readme_table.py"
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.count("| milp-planner |") >= 2


def test_readme_names_the_commands_make_runs() -> None:
    """`make demo` and `make test` also stand there as raw lines."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for line in ("make demo", "make test", "-m pip install .\n", "-m pip install -e '.[test]'",
                 "-m pytest"):  # fmt: skip
        assert line in readme
