"""Shares of a plan's seconds and bytes by their source, by hand."""

import pytest

import milp_planner
from milp_planner.inputs import Model
from milp_planner.plans.ledger import ledger_of
from milp_planner.plans.origins import OriginsInfo, origins_grid, origins_of, told
from milp_planner.plans.placement import Plan
from milp_planner.pricing.profile import load_profile, profile_names
from milp_planner.pricing.sources import Source
from scenarios import catalog
from tests.milp_planner.pricing.build import cluster, model

WORDS = ("measured on ", "interpolated on ", "data sheet", "assumed")
ON = "NVIDIA H100 80GB HBM3"
WHOLE = {"rows": 80_000, "constraints": {"sharding_types": ["table_wise"], "modes": ["HBM_ONLY"]}}


def planned(read: Model, profile: str = "h100-fbgemm") -> Plan:
    """A plan that is found at once."""
    return milp_planner.plan(read, cluster(), profile=profile, formulation="greedy", time_limit=5)


def known(plan: Plan) -> OriginsInfo:
    """Its origins, which must exist."""
    found = origins_of(plan, ledger_of(plan))
    assert found is not None
    return found


def test_seconds_by_hand() -> None:
    """Every rank's seconds are those of the check, divided by phase: lookups are measured in fp32,
    and the exchange is interpolated."""
    plan = planned(model(WHOLE, {**WHOLE, "rows": 50_000}))
    found, verdict = known(plan), plan.verdict
    assert verdict is not None and verdict.loads is not None
    assert found.kinds == (f"measured on {ON}", "interpolated on NVIDIA H20 and H100")
    phases = plan.instance.phases
    lookups = [phases.index("fwd_compute"), phases.index("bwd_compute")]
    exchange = [phases.index("fwd_comms"), phases.index("bwd_comms")]
    for rank, (measured, between) in enumerate(found.seconds):
        cost = verdict.loads.cost[rank]
        assert measured == cost[lookups].sum()
        assert between == cost[exchange].sum()
        assert measured + between == cost.sum()


def test_another_type_or_optimizer_is_interpolated() -> None:
    """fp16 was not measured at all, LAMB's update not: only its lookup is measured."""
    half = known(planned(model({**WHOLE, "dtype": "fp16"})))
    assert not any(kind.startswith("measured") for kind in half.kinds)
    plan = planned(model({**WHOLE, "optimizer": "adam"}))
    profile = load_profile("h100-fbgemm")
    assert profile.step is not None
    update = {name: terms for name, terms in profile.step.update.items() if name != "adam"}
    less = profile.model_copy(update={"step": profile.step.model_copy(update={"update": update})})
    found = known(Plan(plan.model, plan.cluster, less, plan.instance, plan.outcome, plan.tables))
    forward = plan.instance.phases.index("fwd_compute")
    verdict = plan.verdict
    assert verdict is not None and verdict.loads is not None
    assert [row[0] for row in found.seconds] == verdict.loads.cost[:, forward].tolist()
    assert f"interpolated on {ON}" in found.kinds


def test_what_a_profile_says_nothing_of_is_assumed() -> None:
    """TorchRec's constants are of no machine; links are the cluster's."""
    found = known(planned(model(WHOLE), "torchrec-default"))
    assert found.kinds == ("data sheet", "assumed")
    assert found.error is None
    assert "the profile states no error of its prices" in told(found)[0]


@pytest.mark.parametrize("profile", profile_names())
def test_every_shipped_profile_says_where_its_prices_come_from(profile: str) -> None:
    """All seconds of every rank have a source, in words that the matrix of profiles has, too."""
    plan = planned(model(WHOLE, {"rows": 1000}), profile)
    found, verdict = known(plan), plan.verdict
    assert verdict is not None and verdict.loads is not None
    assert [sum(row) for row in found.seconds] == verdict.loads.cost.sum(axis=1).tolist()
    assert found.kinds and all(kind.startswith(WORDS) for kind in found.kinds)


def test_every_shipped_cluster_says_so() -> None:
    """Of its seconds and, where it has HBM, of its bytes."""
    for entry in catalog.clusters():
        site = catalog.find_cluster(entry.name)
        plan = milp_planner.plan(model(WHOLE), site, formulation="greedy", time_limit=20)
        found = known(plan)
        assert found.kinds and len(found.seconds) == site.num_ranks, entry.name
        assert len(found.bytes) == (0 if site.cpu_only else site.num_ranks), entry.name


def test_a_declaration_alone_changes_what_is_said() -> None:
    """Nothing is read from the words of an origin: the same prices, declared, are measured."""
    plan = planned(model(WHOLE), "torchrec-default")
    seen = Source(how="measured", hardware="TPU")
    declared = plan.profile.model_copy(update={"sources": {"lookup": seen}})
    again = Plan(plan.model, plan.cluster, declared, plan.instance, plan.outcome, plan.tables)
    assert known(again).kinds == ("measured on TPU", "data sheet")


def test_bytes_are_the_ledgers() -> None:
    """Every rank's bytes add up to its ledger: formulas, and what the inputs state."""
    plan = planned(model(WHOLE))
    found, ledger = known(plan), ledger_of(plan)
    assert ledger is not None and "formula" in found.byte_kinds
    for place, amounts in zip(ledger.hbm, found.bytes, strict=True):
        assert sum(amounts) == place.used
    read = model(WHOLE).model_copy(update={"outside_embeddings": None})
    for held, kind in (({"kjt_multiple": 0}, "assumed"), ({"hbm_percent": 15}, "stated")):
        site = cluster(reservations=held)
        plan = milp_planner.plan(read, site, formulation="greedy", time_limit=5)
        assert known(plan).byte_kinds == ("formula", kind)


def test_one_grid_shows_every_rank() -> None:
    """A row per rank, a column per source, and shares that add up to one."""
    found = known(planned(model(WHOLE, {**WHOLE, "rows": 50_000})))
    grid = origins_grid(found)
    assert len(grid.rows) == len(found.seconds)
    some = max(grid.rows, key=lambda row: row[1].value or 0)
    seconds = some[1 : 1 + len(found.kinds)]
    assert abs(sum(cell.value or 0 for cell in seconds) - 1) < 1e-9


def test_it_is_in_plan_json() -> None:
    """``origins`` stands beside the ledger, and reading the plan back gives the same."""
    from milp_planner.plans.plan_file import plan_from_dict, plan_to_dict

    plan = planned(model(WHOLE))
    document = plan_to_dict(plan)
    assert document["origins"] == known(plan).to_dict()
    assert known(plan_from_dict(document)) == known(plan)
