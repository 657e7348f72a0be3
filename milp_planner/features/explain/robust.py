"""One plan for several scenarios: by weights, or against the worst of them.

All scenarios have the same tables and ranks; prices and capacities differ. A plan's value in a
scenario is its objective there. Scenarios become phases of one Instance: its
``step_time`` is the weighted sum of their objectives, so the weighted question is solved exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from formulations import Instance, Objective, Placement, Status
from formulations.instance.file import instance_from_dict, instance_to_dict
from formulations.result.check import check
from milp_planner.errors import BadInput
from milp_planner.features.explain.budget import Budget
from milp_planner.files import Facts


def combine(scenarios: Mapping[str, Instance], weights: Mapping[str, int]) -> Instance:
    """One Instance whose ``step_time`` (or ``total``) is the weighted sum of the scenarios'.

    Its phases are (scenario, phase), its resources (scenario, resource); options that some
    scenario lacks are left out.
    """
    documents = {name: instance_to_dict(i) for name, i in scenarios.items()}
    _same(scenarios)
    first = next(iter(documents.values()))
    busiest = first["objective"] == Objective.BUSIEST_RANK.value
    lengths = {n: 1 if busiest else len(d["phases"]) for n, d in documents.items()}
    tables = []
    for index, table in enumerate(first["tables"]):
        options = []
        for option in table["options"]:
            parts = {n: _option(d, index, option["name"]) for n, d in documents.items()}
            merged = _merge(parts, weights, lengths, busiest)
            if merged is not None:
                options.append(merged)
        if not options:
            raise BadInput(f"table {table['name']}: no option is there in every scenario")
        tables.append({"name": table["name"], "options": options})
    document = {
        **{k: first[k] for k in ("format", "ranks", "machines", "time_unit")},
        "name": "robust", "source": " + ".join(documents),
        "phases": [f"{n}/{p}" for n, d in documents.items()
                   for p in (["all"] if busiest else d["phases"])],
        "objective": Objective.TOTAL.value if first["objective"] == "total" else "step_time",
        "resources": [{**r, "name": f"{r['name']}@{n}"} for n, d in documents.items()
                      for r in d["resources"]],
        "tables": tables,
    }  # fmt: skip
    return instance_from_dict(document, "robust")


def onto(instance: Instance, combined: Instance, placement: Placement) -> Placement:
    """Choices made on one Instance (``combined``) on another with options of the same names."""
    options = [
        instance.option_index(t, combined.option_names[int(o)])
        for t, o in enumerate(placement.options)
    ]
    return Placement(np.asarray(options, dtype=np.int64), placement.ranks)


def start_of(
    combined: Instance, scenarios: Mapping[str, Instance], plans: Sequence[Placement]
) -> Placement | None:
    """The best on the combined Instance of some plans of the first scenario; None: none fits."""
    first = next(iter(scenarios.values()))
    found: list[tuple[int, Placement]] = []
    for plan in plans:
        try:
            there = onto(combined, first, plan)
        except KeyError:
            continue  # one of its options is not there in every scenario
        verdict = check(combined, there)
        if verdict.feasible:
            found.append((verdict.objectives[combined.objective.value], there))
    return min(found, key=lambda pair: pair[0], default=(0, None))[1]


def _same(scenarios: Mapping[str, Instance]) -> None:
    first, *others = scenarios.values()
    for name, other in list(scenarios.items())[1:]:
        for what, a, b in (
            ("tables", first.table_names, other.table_names),
            ("machines", first.machines, other.machines),
            ("objective", first.objective, other.objective),
        ):
            if a != b:
                raise BadInput(f"scenario {name}: its {what} differ from the first scenario's")
    if not others:
        raise BadInput("a robust plan needs two scenarios or more")


def _option(document: dict[str, Any], table: int, name: str) -> dict[str, Any] | None:
    options = document["tables"][table]["options"]
    return next((o for o in options if o["name"] == name), None)


def _merge(
    parts: Mapping[str, dict[str, Any] | None], weights: Mapping[str, int],
    lengths: Mapping[str, int], busiest: bool,
) -> dict[str, Any] | None:  # fmt: skip
    """One option with the shards of all scenarios; None where they do not have the same shape."""
    known = {n: o for n, o in parts.items() if o is not None}
    first = next(iter(known.values()), None)
    if first is None or len(known) < len(parts):
        return None
    if any(_shape(o) != _shape(first) for o in known.values()):
        return None
    blocks = []
    for index, block in enumerate(first["blocks"]):
        runs = {n: _entries(o["blocks"][index]["shards"]) for n, o in known.items()}
        positions = max(map(len, runs.values()))
        shards = []
        for at in range(positions):
            use: dict[str, int] = {}
            cost: list[int] = []
            for name, run in runs.items():
                shard = run[at] if len(run) > 1 else run[0]
                use |= {f"{r}@{name}": v for r, v in shard.get("use", {}).items()}
                times = [sum(shard["cost"])] if busiest else shard["cost"]
                cost += [weights[name] * v for v in times]
            shards.append({"use": use, "cost": cost})
        blocks.append({**block, "shards": shards})
    return {**first, "blocks": blocks}


def _entries(shards: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Shard entries with runs spread out; a single entry without a run stays shared."""
    if len(shards) == 1 and shards[0].get("repeat", 1) == 1:
        return list(shards)
    return [shard for shard in shards for _ in range(shard.get("repeat", 1))]


def _shape(option: dict[str, Any]) -> list[Any]:
    rest = [{k: v for k, v in b.items() if k != "shards"} for b in option["blocks"]]
    return [option.get("fusion"), rest]


#: Weights of a worst-case round are whole numbers that add up to about this.
RESOLUTION = 1000
WORST, WEIGHTED = "worst", "weighted"


@dataclass(frozen=True)
class ScenarioRow:
    """One scenario."""

    name: str
    weight: int
    own: int | None
    """Objective of the best plan known for it alone; ``own_bound``: what none goes below."""
    own_bound: int | None
    value: int | None
    """Of the common plan there."""
    regret: float | None
    """(value − own)/max(1, |own|)."""


@dataclass(frozen=True)
class RobustInfo(Facts):
    """The common plan."""

    aim: str
    """``weighted`` (Σ weight × objective) or ``worst`` (the largest objective)."""
    objective_kind: str
    time_unit: str
    status: str
    objective: int | None
    bound: int | None
    """Of the aim. For ``worst`` the bound is the largest of the weighted bounds tried and of the
    scenarios' own (a Lagrangian one: it need not meet the objective)."""
    scenarios: tuple[ScenarioRow, ...]
    options: dict[str, str]
    """Chosen; empty without a plan; dict of table to str."""


def robust(
    scenarios: Mapping[str, Instance],
    budget: Budget,
    weights: Mapping[str, int] | None = None,
    aim: str = WEIGHTED,
    rounds: int = 8,
    own: Mapping[str, tuple[int | None, int | None]] | None = None,
    starts: Sequence[Placement] = (),
) -> tuple[RobustInfo, Instance, Placement | None]:
    """The best common plan.

    Parameters
    ----------
    scenarios : mapping of name to Instance
        The same tables, ranks and objective in each.
    budget : Budget
    weights : mapping, optional
        Whole numbers from 1; default 1 each.
    aim : str
        ``weighted`` or ``worst``.
    rounds : int
        Weighted solves that ``worst`` tries.
    own : mapping, optional
        (objective, bound) of each scenario's own best plan where that is known already.
    starts : sequence of Placement, optional
        Plans of the first scenario to start from.

    Returns
    -------
    (RobustInfo, Instance, Placement or None)
        With the combined Instance the placement belongs to.

    Raises
    ------
    BadInput
        When the scenarios do not have the same tables, ranks, objective and some common option.
    """
    given = {name: (weights or {}).get(name, 1) for name in scenarios}
    own = _own(scenarios, budget) if own is None else own
    if aim == WORST:
        found = _against_worst(scenarios, own, budget, rounds, starts)
    else:
        combined = combine(scenarios, given)
        outcome = budget.solve(combined, 1.0, start_of(combined, scenarios, starts))
        found = _Found(combined, outcome.placement, outcome.objective, outcome.proved_bound)
        found.infeasible = outcome.status == Status.INFEASIBLE
    values = {} if found.placement is None else _values_of(scenarios, found.instance,
                                                          found.placement)  # fmt: skip
    first = next(iter(scenarios.values()))
    rows = tuple(_row(name, given[name], own[name], values.get(name)) for name in scenarios)
    names = found.instance
    options = {} if found.placement is None else {
        table: names.option_names[int(found.placement.options[i])]
        for i, table in enumerate(names.table_names)
    }  # fmt: skip
    info = RobustInfo(
        aim, first.objective.value, first.time_unit, found.status, found.objective, found.bound,
        rows, options,
    )  # fmt: skip
    return info, found.instance, found.placement


def _own(
    scenarios: Mapping[str, Instance], budget: Budget
) -> dict[str, tuple[int | None, int | None]]:
    """Each scenario's own best plan and bound, in half the time."""
    found = {}
    for name, instance in scenarios.items():
        outcome = budget.solve(instance, 0.5 / len(scenarios))
        found[name] = (outcome.objective, outcome.proved_bound)
    return found


def _values_of(
    scenarios: Mapping[str, Instance], combined: Instance, placement: Placement
) -> dict[str, int]:
    """The objective of a common plan in every scenario, by the solver-free check there."""
    found = {}
    for name, instance in scenarios.items():
        there = onto(instance, combined, placement)
        found[name] = check(instance, there).objectives[instance.objective.value]
    return found


@dataclass
class _Found:
    instance: Instance
    placement: Placement | None = None
    objective: int | None = None
    bound: int | None = None
    infeasible: bool = False

    @property
    def status(self) -> str:
        if self.infeasible:
            return Status.INFEASIBLE.value
        if self.objective is None:
            return Status.UNKNOWN.value
        return (Status.OPTIMAL if self.objective == self.bound else Status.FEASIBLE).value


def _against_worst(
    scenarios: Mapping[str, Instance],
    own: Mapping[str, tuple[int | None, int | None]],
    budget: Budget,
    rounds: int,
    starts: Sequence[Placement],
) -> _Found:
    """Weights move towards the worst scenario; every round bounds the worst case from below.

    min over plans of the worst ≥ min over plans of any weighted mean (weights ≥ 0 that add up to
    1): Lagrangian duality of the minimax problem.
    """
    share = dict.fromkeys(scenarios, 1 / len(scenarios))
    bounds = [bound for _, bound in own.values() if bound is not None]
    best = _Found(combine(scenarios, dict.fromkeys(scenarios, 1)), bound=max(bounds, default=None))
    for turn in range(rounds):
        weights = {n: max(1, round(s * RESOLUTION)) for n, s in share.items()}
        combined = combine(scenarios, weights)
        start = best.placement or start_of(combined, scenarios, starts)
        outcome = budget.solve(combined, 1 / (rounds - turn), start)
        if outcome.status == Status.INFEASIBLE:
            best.infeasible = True
            return best
        if outcome.proved_bound is not None:
            mean = -(-outcome.proved_bound // sum(weights.values()))
            best.bound = mean if best.bound is None else max(best.bound, mean)
        if outcome.placement is None:
            return best
        values = _values_of(scenarios, combined, outcome.placement)
        worst = max(values.values())
        if best.objective is None or worst < best.objective:
            best.objective, best.placement = worst, outcome.placement
        if best.objective == best.bound:
            return best
        share = _shifted(share, values)
    return best


def _shifted(share: Mapping[str, float], values: Mapping[str, int]) -> dict[str, float]:
    """Twice the weight where the plan is worst, relative to the others; normalised."""
    top = max(max(values.values()), 1)
    raw = {n: share[n] * 2.0 ** (2 * values[n] / top - 1) for n in share}
    return {n: v / sum(raw.values()) for n, v in raw.items()}


def _row(
    name: str, weight: int, own: tuple[int | None, int | None], value: int | None
) -> ScenarioRow:
    best, bound = own
    regret = None
    if value is not None and best is not None:
        best = min(best, value)  # the common plan is a plan for this scenario too
        regret = (value - best) / max(1, abs(best))
    return ScenarioRow(name, weight, best, bound, value, regret)
