"""Every export, written and read back: nothing is lost and nothing is invented."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formulations.instance.file import instance_from_dict
from milp_planner.errors import BadInput
from milp_planner.inputs.constraints import PinSpec
from milp_planner.integrations import exports
from milp_planner.integrations.exports.dlrmv4 import OFFERED
from milp_planner.plans.placement import Plan
from milp_planner.plans.plan_file import read_plan, unpacked

from . import plans

STATIC = plans.MIXED[:3]
_QUICK = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def _only(pins: dict[str, PinSpec], fields: set[str]) -> dict[str, PinSpec]:
    """Pins without all fields except the given ones."""
    return {name: PinSpec(**pin.model_dump(include=fields)) for name, pin in pins.items()}


def _of_kind(plan: Plan, kind: str) -> dict[str, PinSpec]:
    kept = {t.name for t in plan.tables if t.kind == kind}
    return {name: pin for name, pin in plans.pins_of(plan).items() if name in kept}


@_QUICK
@given(seed=st.integers(0, 10_000))
def test_torchrec(seed: int) -> None:
    """TorchRec's JSON keeps type, mode, load factor, width and ranks of TorchRec tables."""
    plan = plans.random_plan(seed, on=plans.cluster(2, 4))
    back = exports.read(exports.write(plan, "torchrec"), "torchrec", plan.model)
    assert back == _of_kind(plan, "torchrec")


@_QUICK
@given(seed=st.integers(0, 10_000))
def test_torchrec_callback(seed: int) -> None:
    """The module holds what TorchRec's JSON holds, and is Python."""
    plan = plans.random_plan(seed, on=plans.cluster(2, 4))
    text = exports.write(plan, "torchrec-callback")
    compile(text, "placed.py", "exec")
    back = exports.read(text, "torchrec-callback", plan.model)
    assert back == _of_kind(plan, "torchrec")


@_QUICK
@given(seed=st.integers(0, 10_000))
def test_dynamicemb(seed: int) -> None:
    """The table options keep mode, exact ratio and routing rule of dynamicemb tables."""
    plan = plans.random_plan(seed)
    back = exports.read(exports.write(plan, "dynamicemb"), "dynamicemb", plan.model)
    assert back == _of_kind(plan, "dynamicemb")


@_QUICK
@given(seed=st.integers(0, 10_000))
def test_tzrec(seed: int) -> None:
    """The fragment keeps type and mode of TorchRec tables, and the type of dynamicemb tables."""
    plan = plans.random_plan(seed)
    dynamic = _of_kind(plan, "dynamicemb")
    if any(pin.mode == "HOST_ONLY" for pin in dynamic.values()):
        with pytest.raises(BadInput, match="HOST_ONLY"):
            exports.write(plan, "tzrec")
        return
    back = exports.read(exports.write(plan, "tzrec"), "tzrec", plan.model)
    expected = _only(_of_kind(plan, "torchrec"), {"sharding_type", "mode"})
    for name, pin in dynamic.items():
        expected |= _only({name: pin}, {"sharding_type"})
    assert back == expected


@_QUICK
@given(seed=st.integers(0, 10_000))
def test_dlrmv4(seed: int) -> None:
    """The environment keeps type and mode of every table; the mode of data-parallel is implied."""
    limits = {"modes": ["HBM_ONLY"], "sharding_types": [*OFFERED]}
    plan = plans.random_plan(seed, *({**each, "constraints": limits} for each in STATIC))
    back = exports.read(exports.write(plan, "dlrmv4"), "dlrmv4", plan.model)
    for name, pin in _only(plans.pins_of(plan), {"sharding_type", "mode"}).items():
        implied = pin.sharding_type == "data_parallel"
        assert back[name] == (pin.model_copy(update={"mode": None}) if implied else pin)


def test_joint_plan_is_covered_by_two_files() -> None:
    """If TorchRec and dynamicemb tables are planned jointly, the two files hold every table
    once."""
    plan = plans.random_plan(1)
    both = [
        exports.read(exports.write(plan, to), to, plan.model) for to in ("torchrec", "dynamicemb")
    ]
    assert sorted([*both[0], *both[1]]) == [t.name for t in plan.tables]


def test_unknown_format() -> None:
    """An unknown format is refused with the nearest name."""
    with pytest.raises(BadInput, match="did you mean torchrec"):
        exports.get("torchrek")


@pytest.mark.parametrize("to", exports.FORMATS)
def test_plan_without_a_placement(to: str) -> None:
    """If no plan was found, there is nothing to export."""
    plan = plans.random_plan(0)
    with pytest.raises(BadInput, match="nothing to export"):
        exports.write(replace(plan, tables=()), to)


@pytest.mark.parametrize("ranks", [[99], [0, 1], []])
def test_a_refuted_placement_is_not_exported(ranks: list[int]) -> None:
    """An unknown rank, one too many, or none: every format refuses it in a sentence."""
    plan = plans.chosen_plan({"a": "table_wise/HBM_ONLY"}, plans.static("a"))
    assert plan.outcome.placement is not None
    moved = replace(plan.outcome.placement, ranks=[[np.array(ranks, dtype=np.int64)]])
    wrong = replace(plan, outcome=plan.outcome.with_(placement=moved))
    for to in exports.FORMATS:
        with pytest.raises(BadInput, match="placement is refuted: table 'a'"):
            exports.write(wrong, to)


def test_a_cost_that_is_not_the_placements_is_not_exported() -> None:
    """The cost that the plan claims is recomputed first."""
    plan = plans.chosen_plan({"a": "table_wise/HBM_ONLY"}, plans.static("a"))
    assert plan.verdict is not None
    objective = plan.verdict.objectives[plan.instance.objective.value]
    wrong = replace(plan, outcome=plan.outcome.with_(objective=objective - 1))
    with pytest.raises(BadInput, match=f"it costs {objective}, not {objective - 1} as the plan"):
        exports.write(wrong, "torchrec")


def test_forged_plans_are_not_exported(shared_data: Path, tmp_path: Path) -> None:
    """Placements that somebody changed, in files with today's form of fingerprints."""
    for name in ("r3_f16", "r3_f17", "r3_f18"):
        document = json.loads((shared_data / "forged" / f"{name}.json").read_text())
        part = {key: unpacked(document[key], key) for key in ("instance", "outcome")}
        prints = instance_from_dict(part["instance"]).fingerprint
        part["outcome"]["instance"] = document["fingerprints"]["instance"] = prints
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(document | part))
        plan = read_plan(path)
        with pytest.raises(BadInput, match="placement is refuted"):
            exports.write(plan, "torchrec")
