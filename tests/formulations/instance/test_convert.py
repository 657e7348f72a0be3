"""Literature files: how they become Instances, and what is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations import InstanceError, Objective, Scope, Where, write_instance
from formulations.instance.convert import common_scale, names_in, read_any, scaled
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import two_modes

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
    instance = read_any(saved(tmp_path, MMKP))
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
    """Agents are ranks with their capacity, items tables with one option per agent."""
    instance = read_any(saved(tmp_path, GAP))
    assert instance.num_ranks == 2
    assert instance.resources[0].capacity.tolist() == [3, 2]
    assert instance.shard_cost[:, 0].tolist() == [1, 4, 5, 3, 2, 3]
    assert instance.option_names[:2] == ("agent0", "agent1")
    # Agent 0 takes one item of weight 2, agent 1 two: 1 + 3 + 3.
    assert brute_force(instance).objective == 7


def test_gap_that_maximises(tmp_path: Path) -> None:
    """Sense max negates costs and the published optimum."""
    instance = read_any(saved(tmp_path, {**GAP, "sense": "max", "optimum": 11}))
    assert instance.shard_cost[0, 0] == -1
    assert instance.reference[0]["objective"] == -11
    assert "−1 × cost" in instance.source


def test_files_with_several_instances(tmp_path: Path) -> None:
    """FILE#NAME picks one, even if NAME contains #; without a name the error asks for one."""
    several = saved(tmp_path, [{**MMKP, "name": "set#1"}, {**MMKP, "name": "set#2"}])
    assert names_in(several) == ["set#1", "set#2"]
    assert read_any(f"{several}#set#2").name == "set#2"
    with pytest.raises(InstanceError, match=r"holds 2 instances; pick one as file.json#NAME"):
        read_any(several)
    with pytest.raises(InstanceError, match=r"holds no instance 'set#3'; did you mean 'set#"):
        read_any(f"{several}#set#3")
    by_name = saved(tmp_path, {"a": GAP, "b": GAP}, "gap.json")
    assert read_any(f"{by_name}#b").name == "b"
    assert read_any(saved(tmp_path, {"only": GAP}, "one.json")).name == "only"


def test_our_own_format_is_recognised(tmp_path: Path) -> None:
    """An instance file is read as it is, gzipped or not; it holds one instance only."""
    for name in ("i.json", "i.json.gz"):
        write_instance(two_modes(), tmp_path / name)
        assert read_any(tmp_path / name).fingerprint == two_modes().fingerprint
        assert names_in(tmp_path / name) == []
    with pytest.raises(InstanceError, match=r"holds one instance"):
        read_any(f"{tmp_path / 'i.json'}#x")


def test_gzipped_literature(tmp_path: Path) -> None:
    """Gzip is recognised by its content."""
    path = tmp_path / "m.json"
    path.write_bytes(gzip.compress(json.dumps(MMKP).encode(), mtime=0))
    assert read_any(path).num_tables == 2


@pytest.mark.parametrize(("change", "sentence"), [
    ({"sense": "min"}, "sense is 'min', allowed: max"),
    ({"groups": 3}, "profit must have 3 rows, found 2 rows"),
    ({"groups": 0}, "groups must be a whole number, 1 or more, found 0"),
    ({"capacity": [5]}, "capacity must list 2 numbers, found 1 numbers"),
    ({"capacity": [5, -1]}, "capacity: whole numbers of 0 or more"),
    ({"capacity": "x"}, "capacity must list 2 numbers, found 'x'"),
    ({"profit": [[1, "9"], [2, 4]]}, r"profit\[0\]: a number is needed, found '9'"),
    ({"profit": [[1, 0.1234567], [2, 4]]}, "profit: more than 6 decimals"),
    ({"profit": [[1, 1e300], [2, 4]]}, "out of range"),
    ({"weight": [[[1, 1], [4, 1]]]}, "weight must list 2 groups"),
    ({"weight": [[[1, 1], [4, 1.5]], [[1, 0], [2, 3]]]}, r"weight\[0\]\[1\]: whole numbers"),
    ({"weight": [[[1, 1], [4]], [[1, 0], [2, 3]]]}, r"weight\[0\]\[1\] must list 2 numbers"),
])  # fmt: skip
def test_mistakes_are_sentences(tmp_path: Path, change: dict[str, Any], sentence: str) -> None:
    """Every malformed field is named with what was found and what is allowed."""
    with pytest.raises(InstanceError, match=sentence):
        read_any(saved(tmp_path, {**MMKP, **change}))


@pytest.mark.parametrize("document", [[], {}, 3, "x", {"a": 1}, [MMKP, 3], {"format": "other"}])
def test_unknown_kinds_are_refused(tmp_path: Path, document: Any) -> None:
    """Anything else is refused in one sentence that names the file."""
    with pytest.raises(InstanceError, match=r"file\.json"):
        read_any(saved(tmp_path, document))


@given(st.lists(st.integers(-(10**9), 10**9), min_size=1), st.integers(0, 6))
def test_decimals_are_scaled_exactly(values: list[int], decimals: int) -> None:
    """Numbers written with decimals are scaled to integers without loss."""
    written = [float(f"{v}e-{decimals}") for v in values]
    scale = common_scale(written, "x")
    assert 10**decimals % scale == 0
    assert [scaled(w, scale) * (10**decimals // scale) for w in written] == values


JUNK = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3)),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([MMKP, GAP]), st.data())
def test_mutated_files_never_raise_anything_else(
    tmp_path_factory: pytest.TempPathFactory, document: dict[str, Any], data: st.DataObject
) -> None:
    """One field replaced by anything: an Instance or one sentence, never another exception."""
    field = data.draw(st.sampled_from(sorted(document)))
    path = tmp_path_factory.mktemp("junk") / "file.json"
    path.write_text(json.dumps({**document, field: data.draw(JUNK)}))
    try:
        read_any(path)
    except InstanceError as error:
        assert str(error)
