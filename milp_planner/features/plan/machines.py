"""How many machines of the cluster's kind would be enough where nothing fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from formulations import Instance, InstanceError, Outcome, Settings
from formulations.capacity.budget import Budget
from formulations.capacity.curve import Curve
from formulations.result.outcome import StoppedBy, nothing
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


def machine_curve(model: Model, cluster: Cluster, objective: str, budget: Budget) -> Curve:
    """The objective over the number of machines; plans and bounds do not carry over.

    BadInput or InstanceError from a point that has no Instance.
    """

    @lru_cache(maxsize=1)
    def make(count: int) -> Instance:
        return compile_for(model, with_machines(cluster, count), objective).instance

    return Curve(make, None, budget)


def _search(model: Model, cluster: Cluster, budget: Budget) -> dict[str, int | None]:
    """The numbers of :func:`with_more_machines`."""
    made = machine_curve(model, cluster, "total", budget).make

    def fitted(count: int, share: float) -> Outcome:
        try:
            return budget.try_to_fit(made(count), share)
        except (BadInput, InstanceError):  # such as sums too large for an Instance
            return nothing("", StoppedBy.EXHAUSTED)

    curve = Curve(made, None, budget, ask=fitted)
    now = len(cluster.machines)
    tried = too_few = now  # the solve proved that these are too few
    fits: bool | None = None
    while not fits and tried < MOST_TIMES * now and not budget.over():
        tried *= 2
        fits = curve.solve(tried, SHARE).reaches(None)
        too_few = tried if fits is False else too_few
    enough = None
    if fits:
        enough, refuted = curve.least(tried // 2, tried, share=SHARE)
        too_few = refuted if refuted > tried // 2 else too_few
    return {"now": now, "enough": enough, "too_few": too_few, "tried": tried}
