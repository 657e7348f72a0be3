"""Published instances with proven optima: the small ones; all of them in benchmarks/literature."""

from __future__ import annotations

from pathlib import Path

import pytest

from formulations import Settings, solve
from formulations.instance.convert import names_in, read_any

SMALL_GAP = [f"gap1-{i}" for i in range(5)] + ["gap12-2", "gap12-4", "a05100", "a10100", "a20100"]


def files(data: Path) -> list[str]:
    """The instances that either exact formulation proves in about a second."""
    gap = [f"{data}/gap/gap_public.json#{name}" for name in SMALL_GAP]
    set3 = data / "mmkp" / "hiremath_hill_TestSet3.25GP10IT5KP.json"
    khan = [f"{data}/mmkp/khan_I0{i}.json" for i in (1, 2, 5, 6)]
    return gap + [f"{set3}#{name}" for name in names_in(set3)] + khan


@pytest.mark.parametrize("formulation", ["cpsat", "mip"])
def test_published_optima(shared_data: Path, formulation: str) -> None:
    """Every small published instance is solved to exactly its published optimum, with proof; HiGHS
    alone meets it with a bound in floating point."""
    chosen = files(shared_data)
    for file in chosen if formulation == "cpsat" else chosen[::3]:
        instance = read_any(file)
        asked = Settings(time_limit=120, workers=2, certificate=False, polish=False)
        outcome = solve(instance, formulation, asked)
        assert outcome.objective == instance.reference[0]["objective"], file
        assert outcome.gap == 0.0, file
        assert outcome.closed or formulation == "mip", file
