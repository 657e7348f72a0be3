"""Planning for a trainer: what is found runs as planned, and no brute force does better."""

import itertools
import re
from dataclasses import replace
from typing import Any

import pytest

from formulations import Settings, check
from milp_planner import plan, verify
from milp_planner.errors import BadInput, FallsShort
from milp_planner.inputs import Cluster, Model
from milp_planner.integrations import replay
from milp_planner.integrations.replay import Trainer
from milp_planner.integrations.replay.judge import judge
from milp_planner.integrations.replay.plan_for import for_trainer, plan_for, told
from milp_planner.integrations.replay.search import Search, widened
from milp_planner.plans.compile import compile_for
from tests.milp_planner.integrations.exports import plans

SEQUENCE = {"dim": 512, "output": "sequence"}


def busy(*rows: int, **more: Any) -> Model:
    """Tables of 512 columns, the first of which return long sequences."""
    lengths = (300.0, 200.0, 50.0, 1.0, 1.0)
    tables = [
        plans.static(f"t{i}", n, sequence_length=lengths[i], **SEQUENCE, **more)
        for i, n in enumerate(rows)
    ]
    return plans.model(*tables)


def search_of(model: Model, trainer: Trainer, on: Cluster, limits: Settings) -> Search:
    """The search of a trainer's settings for a model."""
    compiled = compile_for(model, on, "step_time")
    return Search(trainer, compiled.options, compiled.instance, limits)


@pytest.mark.parametrize("trainer", ["dlrmv4", "tzrec"])
def test_it_runs_as_planned(trainer: str) -> None:
    """The export of the plan is judged exact, at the plan's price; every claim is verified."""
    plan = plan_for(trainer, busy(5000, 400, 90_000), plans.cluster(1, 4), time_limit=4)
    judgement, _ = judge(plan, trainer)
    assert judgement.exact and judgement.runs == judgement.planned == plan.outcome.objective
    known = for_trainer(plan.outcome)
    assert known is not None and known.unrestricted <= judgement.planned
    assert plan.outcome.bound is not None and plan.outcome.bound <= known.unrestricted
    assert verify(plan).ok
    assert f"{trainer} runs this plan as it is" in str(told(plan))


@pytest.mark.parametrize("trainer", ["dlrmv4", "tzrec"])
@pytest.mark.parametrize("seconds", [1e-9, 1.0])
def test_it_is_never_dearer_than_the_export_it_starts_from(trainer: str, seconds: float) -> None:
    """Even without time for a search, what the plan's own export runs is its first answer."""
    runner, on = replay.get(trainer), plans.cluster(1, 4)
    best = plan(widened(busy(5000, 400, 90_000), runner), on, formulation="greedy")
    exported, _ = judge(best, trainer)
    search = search_of(best.model, runner, on, plans.quick(seconds))
    found = search.run(search.nearest(best.outcome.placement.options.tolist()))
    assert found is not None and found.cost <= exported.runs


@pytest.mark.parametrize(("machines", "rows"), [(1, (5000, 400, 90_000)), (2, (9000, 8000, 7000))])
def test_no_settings_are_better(machines: int, rows: tuple[int, ...]) -> None:
    """All combinations of types, replayed one by one: none costs less than the search's best."""
    trainer, on = replay.get("dlrmv4"), plans.cluster(machines, 2)
    model = widened(busy(*rows), trainer)
    search, every = (search_of(model, trainer, on, plans.quick(t)) for t in (3.0, 60.0))
    found = search.run(tuple(choices[0] for choices in search.choices))
    assert found is not None and check(search.instance, found.placement).feasible
    for settings in itertools.product(*every.choices):
        every.score(settings)
    assert every.best is not None and found.cost == every.best.cost


def test_the_search_starts_from_what_is_nearest() -> None:
    """Columns that the trainer cannot cut are held whole; row parts of a machine go everywhere."""
    tables = [plans.static("narrow", 5000, 64), plans.static("wide", 5000, 512)]
    trainer = replay.get("dlrmv4")
    model = widened(plans.model(*tables), trainer)
    search = search_of(model, trainer, plans.cluster(2, 2), plans.quick(1.0))
    for asked, runs in (
        (("column_wise:2", "column_wise:2"), ("table_wise", "column_wise:4")),
        (("table_row_wise", "data_parallel"), ("row_wise", "data_parallel")),
    ):
        wanted = [search.options.index(t, f"{n}/HBM_ONLY") for t, n in enumerate(asked)]
        found = [search.options.names[o] for o in search.nearest(wanted)]
        assert found == [f"{n}/HBM_ONLY" for n in runs]


def test_a_plan_far_from_the_best_says_why() -> None:
    """Above 5%: what the trainer's planner does not know, and the export that runs any plan."""
    plan = plan_for("tzrec", busy(5000, 400), plans.cluster(1, 2), time_limit=2)
    known, cost = for_trainer(plan.outcome), plan.outcome.objective
    words = []
    for best in (cost, cost // 2):
        detail = {"trainer": replace(known, unrestricted=best).to_dict()}
        words.append(str(told(replace(plan, outcome=plan.outcome.with_(detail=detail)))))
    assert "one id a sample" not in words[0]
    assert "takes every table for one id a sample" in words[1] and "torchrec-callback" in words[1]


def test_it_ends_when_all_is_tried() -> None:
    """Four tables of three types each, some reached by chance alone; time is left."""
    trainer = replay.get("dlrmv4")
    search = search_of(busy(500, 400, 300, 200), trainer, plans.cluster(1, 2), plans.quick(60.0))
    assert search.run(tuple(choices[0] for choices in search.choices)) is not None
    assert [len(choices) for choices in search.choices] == [3] * 4 and len(search.tried) == 3**4


def test_a_stopped_search_keeps_its_start() -> None:
    """With the stop flag set, what runs of the first settings is returned."""
    trainer, limits = replay.get("dlrmv4"), plans.quick(60.0)
    limits.stop.set()
    search = search_of(busy(5000, 400), trainer, plans.cluster(1, 2), limits)
    found = search.run(tuple(choices[0] for choices in search.choices))
    assert found is not None and len(search.tried) == 1


def test_only_what_the_model_allows() -> None:
    """A table that may only be row-wise stays so; one that may only be HOST_ONLY has no way."""
    limits = {"constraints": {"sharding_types": ["row_wise"], "modes": ["HBM_ONLY"]}}
    plan = plan_for("dlrmv4", busy(500, 400, **limits), plans.cluster(1, 2), time_limit=3)
    assert {t.sharding_type for t in plan.tables} == {"row_wise"}
    hosted = {"constraints": {"modes": ["HOST_ONLY"]}}
    with pytest.raises(FallsShort, match="table 't0' has no option that runs there"):
        plan_for("dlrmv4", busy(500, 400, **hosted), plans.cluster(1, 2), time_limit=3)


def test_its_width_is_added_to_the_grid() -> None:
    """A model that lists other widths gets the trainer's 128, as otherwise nothing is cut."""
    limits = {"constraints": {"column_widths": [256]}}
    wide = widened(busy(500, **limits), replay.get("dlrmv4"))
    assert wide.tables[0].constraints.column_widths == (256, 128)
    free = widened(busy(500), replay.get("dlrmv4"))
    assert free.tables[0].constraints.column_widths is None


def test_dynamicemb_keeps_to_all_ranks() -> None:
    """TorchRec tables become row-wise or data-parallel, by an exact solve."""
    tables = [plans.static("a", 5000, 64), plans.static("b", 70, 64), plans.dynamic("d")]
    plan = plan_for("dynamicemb", plans.model(*tables), plans.cluster(1, 2), time_limit=4)
    assert {t.sharding_type for t in plan.tables} <= {"row_wise", "data_parallel"}
    assert verify(plan).ok


def test_what_cannot_fit_is_proved() -> None:
    """Tables larger than all HBM: no plan without host memory, and what one with it costs."""
    with pytest.raises(FallsShort, match=r"proved that no plan .* fits; .*CACHING"):
        plan_for("dlrmv4", busy(3_000_000, 10), plans.cluster(1, 2, "2GiB"), time_limit=4)


def test_the_change_that_would_do_is_named() -> None:
    """A plan that the trainer's planner makes overflow: with another type, as named, it runs. Of
    five tables of one price by its count, on four ranks, the smallest joins the largest, and both
    return long sequences."""
    tables = [
        plans.static(name, rows, 512, output="sequence", sequence_length=length)
        for name, rows, length in (
            ("a", 9000, 4000.0), ("b", 8000, 1.0), ("c", 7000, 1.0), ("d", 6000, 1.0),
            ("e", 5000, 4000.0),
        )
    ]  # fmt: skip
    whole = dict.fromkeys("abcde", "table_wise/HBM_ONLY")
    plan = plans.plan_of(plans.model(*tables), whole, plans.cluster(1, 4, "8GiB"))
    plan = plans.on_ranks(plan, {"a": [0], "b": [2], "c": [2], "d": [2], "e": [1]})
    sentence = r"does not fit: .*rank 0.*would run, at .*; plan --for dlrmv4"
    with pytest.raises(FallsShort, match=sentence) as refused:
        judge(plan, "dlrmv4")
    changes = dict(re.findall(r"(\w)=(\w+)", str(refused.value)))
    assert len(changes) == 1
    options = {"column_wise": "column_wise:4"}
    chosen = whole | {n: f"{options.get(kind, kind)}/HBM_ONLY" for n, kind in changes.items()}
    judge(plans.plan_of(plans.model(*tables), chosen, plans.cluster(1, 4, "8GiB")), "dlrmv4")


def test_the_trainers_that_may_be_named() -> None:
    """Ways to export are not trainers of their own."""
    with pytest.raises(BadInput) as told:
        plan(plans.model(plans.static("a")), plans.cluster(1, 2), trainer="x")
    assert "allowed: torchrec, dlrmv4, tzrec, dynamicemb" in str(told.value)
