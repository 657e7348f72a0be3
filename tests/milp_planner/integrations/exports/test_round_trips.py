"""Every export, written and read back: nothing is lost and nothing is invented.

Pins: what a plan fixes, and models that carry it.

Readers of foreign files: any content gives pins or one sentence, never a traceback.
"""

import contextlib
import json
import random
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formulations.instance.file import instance_from_dict
from milp_planner.errors import BadInput
from milp_planner.inputs.constraints import PinSpec
from milp_planner.inputs.problems import one_of
from milp_planner.integrations import exports
from milp_planner.integrations.exports import known, proper_ratio, with_pins
from milp_planner.integrations.exports.dlrmv4 import OFFERED
from milp_planner.plans.placement import Plan
from milp_planner.plans.plan_file import read_plan, unpacked
from milp_planner.pricing import price

from . import plans

STATIC = plans.MIXED[:3]
_QUICK = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def _only(pins: dict[str, PinSpec], fields: set[str]) -> dict[str, PinSpec]:
    """Pins without all fields except the given ones."""
    return {name: PinSpec(**pin.model_dump(include=fields)) for name, pin in pins.items()}


def _of_kind(plan: Plan, kind: str) -> dict[str, PinSpec]:
    kept = {t.name for t in plan.tables if t.kind == kind}
    return {name: pin for name, pin in plans.pins_of(plan).items() if name in kept}


@pytest.mark.parametrize(
    ("to", "kind"),
    [("torchrec", "torchrec"), ("torchrec-callback", "torchrec"), ("dynamicemb", "dynamicemb")],
)
@_QUICK
@given(seed=st.integers(0, 10_000))
def test_nothing_is_lost(to: str, kind: str, seed: int) -> None:
    """TorchRec's JSON and module keep type, mode, load factor, width and ranks of TorchRec tables,
    dynamicemb's options mode, exact ratio and routing rule of dynamicemb tables."""
    plan = plans.random_plan(seed, on=plans.cluster(2, 4))
    text = exports.write(plan, to)
    if to == "torchrec-callback":
        compile(text, "placed.py", "exec")
    assert exports.read(text, to, plan.model) == _of_kind(plan, kind)


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
    moved = replace(plan.outcome.placement, ranks=[[np.array(ranks, dtype=np.int64)]])
    wrong = replace(plan, outcome=plan.outcome.with_(placement=moved))
    for to in exports.FORMATS:
        with pytest.raises(BadInput, match="placement is refuted: table 'a'"):
            exports.write(wrong, to)


def test_a_cost_that_is_not_the_placements_is_not_exported() -> None:
    """The cost that the plan claims is recomputed first."""
    plan = plans.chosen_plan({"a": "table_wise/HBM_ONLY"}, plans.static("a"))
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


@pytest.mark.parametrize("seed", range(4))
def test_pinned_model_leaves_only_the_plan(seed: int) -> None:
    """A model pinned to a plan leaves every table only the plan's option."""
    plan = plans.random_plan(seed)
    pinned = with_pins(plan.model, plans.pins_of(plan))
    options = price(pinned, plan.cluster)
    for index, placed in enumerate(plan.tables):
        left = [options.choices[o] for o in options.of(index)]
        assert left
        for choice in left:
            assert (choice.sharding, choice.mode, choice.ratio, choice.dist_type) == (
                placed.sharding_type, placed.mode, placed.cache_ratio, placed.dist_type,
            )  # fmt: skip
            assert choice.columns == placed.column_shards


def test_unknown_table_has_a_nearest_name() -> None:
    """A misspelt table is an error that names the nearest one; many tables are not all listed."""
    model = plans.model(plans.static("user"), plans.static("item"))
    with pytest.raises(BadInput, match="'usr'; allowed: user, item; did you mean user"):
        known(model, "usr", "here")
    with pytest.raises(BadInput, match="pins"):
        with_pins(model, {"usr": PinSpec()})
    model = plans.model(*(plans.static(f"t{i}") for i in range(50)))
    with pytest.raises(BadInput, match=r"the model has 50 tables\); did you mean t1"):
        known(model, "tt1", "here")


def test_values_outside_a_list() -> None:
    """A word that is not allowed is refused with the nearest one."""
    with pytest.raises(BadInput, match="did you mean uvm"):
        one_of("uvn", ("hbm", "uvm"), "x")
    with pytest.raises(BadInput, match="found 3"):
        one_of(3, ("hbm",), "x")


@pytest.mark.parametrize("bad", [0, 1, -0.5, "1.5", "half", True, None, "1/0"])
def test_ratio_must_be_proper(bad: object) -> None:
    """Cache ratios lie strictly between 0 and 1."""
    with pytest.raises(BadInput, match="allowed"):
        proper_ratio(bad, "x")
    assert proper_ratio("1/3", "x") == Fraction(1, 3)


TABLES = (plans.static("a"), plans.dynamic("d"))
MODEL = plans.model(*TABLES)
TEXTS = {
    "torchrec": exports.write(plans.random_plan(3, *TABLES), "torchrec"),
    "torchrec-callback": exports.write(plans.random_plan(3, *TABLES), "torchrec-callback"),
    "dynamicemb": exports.write(plans.random_plan(3, *TABLES), "dynamicemb"),
    "tzrec": exports.write(
        plans.chosen_plan({"d": "row_wise/HYBRID/0.5/roundrobin"}, *TABLES), "tzrec"
    ),
    "dlrmv4": exports.write(plans.chosen_plan({}, TABLES[0]), "dlrmv4"),
}
_VALUES = st.sampled_from(
    [None, True, 0, 1, -1, 2**70, 0.5, 1e300, "", "x", "row_wise", [], [1], {}, {"a": 1}]
)
_FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def _judge(text: str, to: str) -> None:
    with contextlib.suppress(BadInput):
        for name, pin in exports.read(text, to, MODEL).items():
            assert isinstance(pin, PinSpec)
            assert name in ("a", "d")


@pytest.mark.parametrize("to", TEXTS)
@_FUZZ
@given(data=st.data())
def test_damaged_text(to: str, data: st.DataObject) -> None:
    """Characters are cut, doubled and overwritten."""
    text = TEXTS[to]
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        size = data.draw(st.integers(0, 30))
        text = (
            text[:at]
            + data.draw(st.sampled_from(["", "{", '"', "x", "\n", "=,", "}}"]))
            + (text[at + size :] if data.draw(st.booleans()) else text[max(0, at - size) :])
        )
    _judge(text, to)


@pytest.mark.parametrize("to", ["torchrec", "dynamicemb"])
@_FUZZ
@given(seed=st.integers(0, 10**6), value=_VALUES)
def test_other_values(to: str, seed: int, value: Any) -> None:
    """A JSON document with any value at any place, or with a place left out."""
    document = json.loads(TEXTS[to])
    draw = random.Random(seed)
    place: Any = document
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = draw.choice(keys)
        if not isinstance(place[key], (dict, list)) or draw.random() < 0.25:
            break
        place = place[key]
    if draw.random() < 0.2:
        del place[key]
    else:
        place[key] = value
    _judge(json.dumps(document), to)


@pytest.mark.parametrize("to", TEXTS)
@given(text=st.text(max_size=40))
def test_any_text(to: str, text: str) -> None:
    """Files of another kind."""
    _judge(text, to)
