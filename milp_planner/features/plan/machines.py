"""How many machines of the cluster's kind would be enough where nothing fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache

from formulations import Instance, InstanceError, Outcome, Settings
from formulations.capacity.budget import Budget
from formulations.capacity.curve import Curve
from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model
from milp_planner.plans.compile import compile_for

#: Most machines to try, as a multiple of the present number.
MOST_TIMES = 16
#: Share of the remaining time for one number of machines.
SHARE = 0.3


def with_machines(cluster: Cluster, count: int) -> Cluster:
    """The cluster with ``count`` machines like its first, in domains like its first.

    BadInput when it describes no links between machines, or is one of several sharding groups.
    """
    if cluster.replicas > 1:
        raise BadInput(
            f"cluster {cluster.name} is one of {cluster.replicas} sharding groups; allowed, where "
            "machines are counted: a cluster without two_d"
        )
    data = cluster.to_dict()
    data["machines"] = [data["machines"][0]] * count
    links = cluster.interconnect
    if links is not None and links.domains is not None:
        data["interconnect"]["domains"] = links.domains.refilled(count).to_dict()
    return Cluster.from_dict(data, f"cluster {cluster.name} with {count} machines")


def with_more_machines(
    outcome: Outcome, model: Model, cluster: Cluster, settings: Settings, seconds: float
) -> Outcome:
    """Add ``diagnosis["machines"]`` to an infeasible outcome, if all machines are alike.

    The number is doubled until a plan exists, then bisected, within ``seconds``. ``now`` is the
    present number; ``enough`` a number with a plan (None: none was found); ``too_few`` the largest
    smaller number proved to have none; ``tried`` the largest tried. The batch per rank is fixed, so
    the global batch grows. Only memory decides: a link between machines that the cluster does not
    describe counts as fast as the link inside one.
    """
    diagnosis = outcome.detail.get("diagnosis")
    alike = len(set(cluster.machines)) == 1 and cluster.replicas == 1
    if not isinstance(diagnosis, Mapping) or not alike:
        return outcome
    budget = Budget(replace(settings, time_limit=seconds, options={}, work_limit=None))
    found = _search(model, _linked(cluster), budget)
    return outcome.with_(detail={**outcome.detail, "diagnosis": {**diagnosis, "machines": found}})


def _linked(cluster: Cluster) -> Cluster:
    data = cluster.to_dict()
    links = data["interconnect"] or {"intra_machine": "1GB/s"}
    across = links.get("inter_machine") or links["intra_machine"]
    data["interconnect"] = {**links, "inter_machine": across}
    return Cluster.from_dict(data, f"cluster {cluster.name} with links")


def machine_curve(
    model: Model, cluster: Cluster, objective: str, budget: Budget,
    solve: Callable[..., Outcome] | None = None,
) -> Curve:  # fmt: skip
    """The objective over the number of machines; plans and bounds do not carry over.

    BadInput or InstanceError from a point that has no Instance.
    """

    @lru_cache(maxsize=1)
    def make(count: int) -> Instance:
        return compile_for(model, with_machines(cluster, count), objective).instance

    return Curve(make, None, budget, solve=solve)


def _search(model: Model, cluster: Cluster, budget: Budget) -> dict[str, int | None]:
    now = len(cluster.machines)
    tried = too_few = now  # the solve proved that these are too few
    enough: int | None = None
    curve = machine_curve(
        model, cluster, "total", budget, lambda there, share, *_: budget.try_to_fit(there, share)
    )

    def fits(count: int) -> bool | None:
        try:
            return curve.solve(count, SHARE).reaches(None)
        except (BadInput, InstanceError):  # such as sums too large for an Instance
            return None

    while enough is None and tried < MOST_TIMES * now and not budget.over():
        tried *= 2
        verdict = fits(tried)
        if verdict:
            enough = tried
        elif verdict is False:
            too_few = tried
    most = low = tried
    if enough is not None:
        low = tried // 2  # open verdicts count as too few, so that ``enough`` can still fall
    while enough is not None and enough - low > 1 and not budget.over():
        middle = (low + enough) // 2
        verdict = fits(middle)
        if verdict:
            enough = middle
            continue
        low = middle
        if verdict is False:
            too_few = middle
    return {"now": now, "enough": enough, "too_few": too_few, "tried": most}
