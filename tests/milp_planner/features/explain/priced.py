"""A plan whose turning point is known by hand: one table, CACHING at x_eff 0.28 or HYBRID at
0.25."""

from typing import Any

from formulations import Settings, solve
from milp_planner.plans.compile import compile_instance
from milp_planner.plans.placement import Plan, decode
from milp_planner.pricing import price
from milp_planner.pricing.profile import Profile, load_profile
from tests.milp_planner.pricing.build import cluster, model

TABLE = {"kind": "dynamicemb", "rows": 1_000_000, "dim": 128, "optimizer": "adam"}
VALUES = 1_000_064 * 1536
"""Value bytes of the table, slots rounded up to 128."""
CACHING, HYBRID = 0.28, 0.25


def profile(**changed: Any) -> Profile:
    """The A10's profile with level curves."""
    data = load_profile("a10").to_dict()
    for name, share in (("caching", CACHING), ("hybrid", HYBRID)):
        data[name] |= {"points": [[0.0, share]], "given_statistics": "same_curve"}
    return Profile.from_dict(data | changed)


def planned(machines: int = 1, ranks: int = 1, *tables: dict[str, Any], **changed: Any) -> Plan:
    """The plan proved best; ``changed`` are fields of the profile."""
    site = cluster(machines, ranks, hbm=VALUES * 6 // 10, ddr=4 * VALUES, profile="a10")
    options = price(model(*(tables or (TABLE,))), site, profile(**changed))
    instance = compile_instance(options)
    outcome = solve(instance, "cpsat", Settings(time_limit=60, workers=1))
    return decode(options, instance, outcome)
