"""Changed prices against inputs written out with the changed numbers."""

from dataclasses import replace

import pytest

from milp_planner import Cluster, Model
from milp_planner.errors import BadInput
from milp_planner.features.explain.perturb import parameters, repriced, same_prices
from milp_planner.plans.compile import compile_instance
from milp_planner.plans.placement import Plan
from milp_planner.pricing import price
from milp_planner.pricing.profile import Profile
from tests.milp_planner.features.explain.priced import TABLE, planned

SKEWED = {**TABLE, "access": {"kind": "zipf", "alpha": 1.0}}
HOT = {
    "rows": 100_000, "dim": 64,
    "access": {"kind": "unknown", "measured_skew": {"max_over_mean": 1.5, "ranks": 4}},
}  # fmt: skip


@pytest.fixture(scope="module")
def plan() -> Plan:
    """Two machines of two ranks, on which launches take time."""
    kernel = {"launch_seconds": 1e-5, "dynamicemb_divisor": 10.0}
    return planned(2, 2, TABLE, SKEWED, HOT, kernel=kernel, spread={"hbm": 0.05})


@pytest.mark.parametrize(
    "name", ["hbm", "host_link", "caching", "hybrid", "uvm_caching", "host_only", "launch_seconds",
             "intra_machine", "inter_machine", "skew"]
)  # fmt: skip
def test_a_factor_is_the_number_times_it(plan: Plan, name: str) -> None:
    """Costs equal those from files with the changed number, and differ from the plan's own."""
    factor = 0.75
    hardware, site, tables = (x.to_dict() for x in (plan.profile, plan.cluster, plan.model))
    if name in ("hbm", "host_link"):
        hardware[name] = f"{round(getattr(plan.profile, name) * factor)}B/s"
    elif name in ("caching", "hybrid", "uvm_caching"):
        hardware[name]["points"] = [[x, min(1, y * factor)] for x, y in hardware[name]["points"]]
    elif name == "host_only":
        hardware[name] *= factor
    elif name == "launch_seconds":
        hardware["kernel"][name] *= factor
    elif name == "skew":
        tables["tables"][1]["access"]["alpha"] = factor
        tables["tables"][2]["access"]["measured_skew"]["max_over_mean"] = 1 + 0.5 * factor
    else:
        rate = round(getattr(plan.cluster.interconnect, name) * factor)
        site["interconnect"][name] = f"{rate}B/s"
    options = price(Model.from_dict(tables), Cluster.from_dict(site), Profile.from_dict(hardware))
    found = repriced(plan, {name: factor})
    assert same_prices(found, compile_instance(options))
    assert not same_prices(found, plan.instance)


def test_nothing_changed_is_the_plans_own_instance(plan: Plan) -> None:
    """Without factors, and with one for ddr, which no price of this cluster reads."""
    assert repriced(plan, {}).fingerprint == plan.instance.fingerprint
    assert same_prices(repriced(plan, {"ddr": 0.5}), plan.instance)


def test_limits_on_moves_stay(plan: Plan) -> None:
    """A plan made under limits on moves is compared with plans under the same limits."""
    limited = replace(plan, instance=replace(plan.instance, max_moved_tables=1))
    assert repriced(limited, {"hbm": 1.1}).max_moved_tables == 1


def test_spreads_are_measured_or_assumed(plan: Plan) -> None:
    """HBM has the profile's own spread, other parameters the given one; every name occurs once."""
    found = {p.name: p for p in parameters(plan, 0.3)}
    assert (found["hbm"].spread, found["hbm"].measured) == (0.05, True)
    assert (found["skew"].spread, found["skew"].measured) == (0.3, False)
    assert {"launch_seconds", "intra_machine", "inter_machine"} <= set(found)
    alone = {p.name for p in parameters(planned(), 0.3)}
    assert alone.isdisjoint({"launch_seconds", "skew"})


@pytest.mark.parametrize("wrong", [0.0, 1.0, -0.2, float("nan")])
def test_a_spread_is_a_share(plan: Plan, wrong: float) -> None:
    """A spread outside 0 to 1 is refused in one sentence."""
    with pytest.raises(BadInput, match="above 0 and below 1"):
        parameters(plan, wrong)


def test_foreign_options_are_refused(plan: Plan) -> None:
    """An imported plan's prices were not computed here, so they cannot be changed here."""
    names = tuple(f"their {name}" for name in plan.instance.option_names)
    foreign = replace(plan, instance=replace(plan.instance, option_names=names))
    with pytest.raises(BadInput, match="plan again"):
        repriced(foreign, {})
