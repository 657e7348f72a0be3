"""Scenarios as phases of one Instance, so that one solve weighs them all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from formulations import Instance, Objective, Placement
from formulations.instance.file import instance_from_dict, instance_to_dict
from formulations.result.check import check
from milp_planner.errors import BadInput


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
