"""Multipliers of one instance's certificate for the rows of a similar one.

Nothing is trusted: what they prove there is derived anew (:func:`formulations.reduce.bounds_at`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from formulations.instance import Instance, Scope
from formulations.proof.build import build_rows
from formulations.result.certificate import Certificate

#: Kinds of rows that get the same multiplier at every place.
_EVEN = ("cost", "capacity")


def carried(certificate: Certificate, before: Instance, after: Instance) -> Certificate | None:
    """The multipliers at the root of a certificate of ``before``, for ``after``.

    Tables, resources and costs are matched by name. Because the ranks may have changed, a cost or
    capacity gets the mean of its multipliers at every place. Rows that ``after`` does not have are
    dropped; so are patterns, peaks and rows about single machines, because what they name may have
    changed. None for a proof of infeasibility, or where no multiplier of a cost is left.
    """
    if certificate.kind != "bound" or not certificate.vectors:
        return None
    known = _Known.of(after)
    root = dict.fromkeys([0, *certificate.nodes[0].get("use", [])])
    vectors = [list(_rows(certificate.vectors[index], before, known)) for index in root]
    priced = [v for v in vectors if any(r["row"] in ("cost", "largest_cost") for r in v)]
    if not priced:
        return None
    return Certificate("bound", 0, tuple(priced), ({"use": list(range(len(priced)))},))


@dataclass(frozen=True)
class _Known:
    """Names of what the rows of an instance can refer to."""

    instance: Instance
    tables: Mapping[str, int]
    costs: frozenset[str]
    resources: frozenset[str]
    fused: frozenset[tuple[int, str, int]]

    @classmethod
    def of(cls, instance: Instance) -> _Known:
        rows = build_rows(instance)
        groups = instance.fusion_groups
        return cls(
            instance,
            {name: index for index, name in enumerate(instance.table_names)},
            frozenset(rows.measures.costs or (instance.objective.value,)),
            frozenset(resource.name for resource in instance.resources),
            frozenset((table, groups[group], level) for table, group, level in rows.fused),
        )


def _rows(
    vector: list[dict[str, Any]], before: Instance, known: _Known
) -> Iterator[dict[str, Any]]:
    """The rows of one vector that the other instance has."""
    even: dict[tuple[str, str], int] = {}
    for row in vector:
        kind = row["row"]
        if kind in _EVEN:
            key = kind, row["of"]
            times = row["times"] * (1 if "at" in row else _places(before, *key))
            even[key] = even.get(key, 0) + times
        elif kind in ("moved_tables", "moved_bytes"):
            if getattr(known.instance, f"max_{kind}") is not None:
                yield row
        elif kind not in ("pattern", "peaks", "functions") and "machine" not in row:
            table = known.tables.get(before.table_names[row["table"]], -1)
            if table >= 0 and _has(known, kind, row, table):
                yield {**row, "table": table}
    for (kind, name), times in even.items():
        each = times // _places(before, kind, name)
        if each and name in (known.costs if kind == "cost" else known.resources):
            yield {"row": kind, "of": name, "times": each}


def _has(known: _Known, kind: str, row: dict[str, Any], table: int) -> bool:
    if kind == "fusion":
        return (table, row["of"], row["level"]) in known.fused
    ranked = {r.name for r in known.instance.resources if r.scope == Scope.RANK}
    return row["of"] in (known.costs if kind == "largest_cost" else ranked)


def _places(instance: Instance, kind: str, name: str) -> int:
    """How many rows of that kind and name there are."""
    if kind == "cost":
        return 1 if instance.objective.value == "total" else instance.num_ranks
    return next(len(r.capacity) for r in instance.resources if r.name == name)
