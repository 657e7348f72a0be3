"""The TorchRec page runs: every Python block of docs/torchrec.md, of which one is the README's.

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


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Names defined after all Python blocks of the page ran in order, as a reader runs them; those
    of the first alone under ``first``."""
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("page"))
        for number, block in enumerate(_blocks(PAGE)):
            if HAS_SERVICE or "torchrec.service" not in block:
                exec(compile(block, f"{PAGE.name} block {number}", "exec"), names)
            names.setdefault("first", dict(names))
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


def test_first_block_is_optimal_and_the_readmes(page: dict[str, Any]) -> None:
    """The one-line change returns an optimal plan with a gap of zero; the README shows it."""
    first = page["first"]
    assert (first["planner"].outcome.status, first["planner"].outcome.gap) == ("optimal", 0)
    assert first["planner"].outcome.bound is not None and first["plan"].plan[""]["t0"].ranks
    if not README.exists():
        pytest.skip("there is no README.md beside this checkout")
    snippets = [block for block in _blocks(README) if "MilpShardingPlanner" in block]
    assert snippets == _blocks(PAGE)[:1], "the README shows the first block of docs/torchrec.md"
