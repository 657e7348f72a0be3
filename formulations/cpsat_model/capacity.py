"""Every resource at every place: Σ use of the shards there ≤ capacity there."""

from __future__ import annotations

from formulations.cpsat_model.loads import Loads, Row, most
from formulations.cpsat_model.rows import add_at_most, with_base
from formulations.cpsat_model.variables import Variables
from formulations.instance import IntArray, Resource, Scope


def limit_resources(variables: Variables, loads: Loads) -> None:
    """Add the capacity rows that can bind, equal ones once with the least capacity.

    For a rank or machine p:  |p|·U_k(x) + Σ use·n ≤ cap_{k,p}, with U_k what every rank carries
    in common. With a choice of place also the pooled row Σ_p over all places, which they imply,
    because propagation and the relaxation gain from it.
    """
    for index, resource in enumerate(variables.instance.resources):
        column = variables.instance.shard_use[:, index]
        if resource.scope == Scope.CLUSTER:
            _limit_cluster(variables, loads, column, int(resource.capacity[0]))
        else:
            _limit_places(variables, loads, column, resource)


def _limit_cluster(variables: Variables, loads: Loads, column: IntArray, capacity: int) -> None:
    row = loads.cluster(column)
    if most(variables, row) > capacity:
        add_at_most(variables, row.var, row.coef, capacity)


def _limit_places(variables: Variables, loads: Loads, column: IntArray, resource: Resource) -> None:
    rows = loads.ranks(column) if resource.scope == Scope.RANK else loads.machines(column)
    base = loads.uniform(column)
    binding = _binding(variables, base, rows, resource.capacity)
    for row, capacity in zip(
        with_base(variables, base, [r for r, _ in binding]), [c for _, c in binding], strict=True
    ):
        add_at_most(variables, row.var, row.coef, capacity)
    if len(binding) > 1:
        _limit_cluster(variables, loads, column, int(resource.capacity.sum()))


def _binding(
    variables: Variables, base: Row, rows: list[Row], capacity: IntArray
) -> list[tuple[Row, int]]:
    """Distinct rows with the least capacity of their places, without those always kept."""
    tightest: dict[tuple[int, bytes, bytes], tuple[Row, int]] = {}
    for row, room in zip(rows, capacity.tolist(), strict=True):
        known = tightest.get(row.key)
        if known is None or room < known[1]:
            tightest[row.key] = (row, room)
    base_most = most(variables, base) if len(base.var) else 0
    return [
        (row, room)
        for row, room in tightest.values()
        if row.base * base_most + most(variables, row) > room
    ]
