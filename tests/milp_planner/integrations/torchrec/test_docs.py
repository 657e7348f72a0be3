"""The TorchRec pages run: every Python block of docs/torchrec.md, and the README's snippet.

Blocks that use TorchRec's planning service run where TorchRec has one (1.9).
"""

import re
from pathlib import Path
from typing import Any

import pytest

from .service.conftest import HAS_SERVICE

ROOT = Path(__file__).resolve().parents[4]
PAGE = ROOT / "docs" / "torchrec.md"
README = ROOT / "README.md"


def _blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)


def _run(code: str, names: dict[str, Any], where: str) -> dict[str, Any]:
    exec(compile(code, where, "exec"), names)
    return names


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Names defined after all Python blocks of the page ran in order, as a reader runs them."""
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("page"))
        for number, block in enumerate(_blocks(PAGE)):
            if HAS_SERVICE or "torchrec.service" not in block:
                _run(block, names, f"{PAGE.name} block {number}")
    return names


def test_every_block_of_the_page_runs(page: dict[str, Any]) -> None:
    """The blocks leave a plan, a proved infeasibility with its shortfall, and a verdict."""
    assert set(page["plan"].plan[""]) == {f"t{i}" for i in range(8)}
    assert [s.tier for s in page["shortfalls"]] == ["hbm", "ddr"]
    assert page["verdict"].feasible
    assert callable(page["inputs"])


@pytest.mark.skipif(not HAS_SERVICE, reason="TorchRec has no planning service")
def test_the_block_of_the_planning_service(page: dict[str, Any]) -> None:
    """TorchRec's orchestrator returns our plan and the reporter its bound."""
    assert set(page["result"].sharding_plan.plan[""]) == {f"t{i}" for i in range(8)}
    assert page["reporter"].reports["H100"].gap == 0


def test_first_block_is_optimal() -> None:
    """The one-line change returns an optimal plan with a gap of zero."""
    names = _run(_blocks(PAGE)[0], {}, "first block")
    assert names["planner"].outcome.status == "optimal"
    assert names["planner"].outcome.gap == 0
    assert names["plan"].plan[""]["t0"].ranks


def test_readme_snippet_runs() -> None:
    """The README's TorchRec snippet, run as it stands."""
    if not README.exists():
        pytest.skip("there is no README.md beside this checkout")
    snippets = [block for block in _blocks(README) if "MilpShardingPlanner" in block]
    assert snippets == _blocks(PAGE)[:1], "the README shows the first block of docs/torchrec.md"
    for snippet in snippets:
        names = _run(snippet, {}, "README snippet")
        assert names["plan"].plan
        assert names["planner"].outcome.bound is not None
