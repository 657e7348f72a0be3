"""Problems of the literature: how they become Instances, and the small ones' proven optima."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.literature.convert import common_scale, names_in, read, scaled
from formulations import Objective, Scope, Settings, Where, solve
from tests.formulations.brute_force import brute_force

MMKP: dict[str, Any] = {
    "name": "tiny", "sense": "max", "groups": 2, "items_per_group": 2, "resources": 2,
    "capacity": [5, 4], "profit": [[1.5, 9], [2, 4]],
    "weight": [[[1, 1], [4, 1]], [[1, 0], [2, 3]]], "optimum": 11, "best_known": 11,
}  # fmt: skip
GAP: dict[str, Any] = {
    "agents": 2, "items": 3, "sense": "min", "cost": [[1, 5, 2], [4, 3, 3]],
    "weight": [[2, 2, 2], [1, 1, 1]], "capacity": [3, 2], "optimum": 8,
}  # fmt: skip


def saved(folder: Path, document: Any, name: str = "file.json") -> Path:
    """The document as a file."""
    path = folder / name
    path.write_text(json.dumps(document))
    return path


def test_mmkp_by_hand(tmp_path: Path) -> None:
    """Groups are tables, knapsacks cluster resources, profits negated and times ten."""
    instance = read(saved(tmp_path, MMKP))
    assert instance.objective == Objective.TOTAL
    assert [(r.name, r.scope, r.capacity.tolist()) for r in instance.resources] == [
        ("knapsack0", Scope.CLUSTER, [5]), ("knapsack1", Scope.CLUSTER, [4])]  # fmt: skip
    assert instance.shard_cost[:, 0].tolist() == [-15, -90, -20, -40]
    assert instance.shard_use.tolist() == [[1, 1], [4, 1], [1, 0], [2, 3]]
    assert (instance.block_where == Where.CLUSTER).all()
    assert "−10 × profit" in instance.source
    # 9 + 4 breaks knapsack 0 (6 > 5): the best is 9 + 2.
    assert brute_force(instance).objective == -110
    assert instance.reference[0]["objective"] == -110


def test_gap_by_hand(tmp_path: Path) -> None:
    """Agents are ranks with their capacity, items tables with one option per agent; sense max
    negates costs and the published optimum."""
    instance = read(saved(tmp_path, GAP))
    assert instance.num_ranks == 2
    assert instance.resources[0].capacity.tolist() == [3, 2]
    assert instance.shard_cost[:, 0].tolist() == [1, 4, 5, 3, 2, 3]
    assert instance.option_names[:2] == ("agent0", "agent1")
    # Agent 0 takes one item of weight 2, agent 1 two: 1 + 3 + 3.
    assert brute_force(instance).objective == 7
    most = read(saved(tmp_path, {**GAP, "sense": "max", "optimum": 11}))
    assert (most.shard_cost[0, 0], most.reference[0]["objective"]) == (-1, -11)


def test_files_with_several_problems(tmp_path: Path) -> None:
    """FILE#NAME picks one, even if NAME contains #."""
    several = saved(tmp_path, [{**MMKP, "name": "set#1"}, {**MMKP, "name": "set#2"}])
    assert names_in(several) == ["set#1", "set#2"]
    assert read(f"{several}#set#2").name == "set#2"
    by_name = saved(tmp_path, {"a": GAP, "b": GAP}, "gap.json")
    assert read(f"{by_name}#b").name == "b"


@given(st.lists(st.integers(-(10**9), 10**9), min_size=1), st.integers(0, 6))
def test_decimals_are_scaled_exactly(values: list[int], decimals: int) -> None:
    """Numbers written with decimals are scaled to integers without loss."""
    written = [float(f"{v}e-{decimals}") for v in values]
    scale = common_scale(written)
    assert 10**decimals % scale == 0
    assert [scaled(w, scale) * (10**decimals // scale) for w in written] == values


SMALL_GAP = [f"gap1-{i}" for i in range(5)] + ["gap12-2", "gap12-4", "a05100", "a10100", "a20100"]


@pytest.mark.parametrize("formulation", ["cpsat", "mip"])
def test_published_optima(shared_data: Path, formulation: str) -> None:
    """Every small published instance is solved to exactly its published optimum, with proof; HiGHS
    alone meets it with a bound in floating point."""
    set3 = shared_data / "mmkp" / "hiremath_hill_TestSet3.25GP10IT5KP.json"
    chosen = [f"{shared_data}/gap/gap_public.json#{name}" for name in SMALL_GAP]
    chosen += [f"{set3}#{name}" for name in names_in(set3)]
    chosen += [f"{shared_data}/mmkp/khan_I0{i}.json" for i in (1, 2, 5, 6)]
    for file in chosen if formulation == "cpsat" else chosen[::3]:
        instance = read(file)
        asked = Settings(time_limit=120, workers=2, certificate=False, polish=False)
        outcome = solve(instance, formulation, asked)
        assert outcome.objective == instance.reference[0]["objective"], file
        assert outcome.gap == 0.0, file
        assert outcome.closed or formulation == "mip", file
