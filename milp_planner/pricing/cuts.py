"""TorchRec's ways to cut a table into columns and rows, and the ranks that hold the parts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from milp_planner.inputs.constraints import COLUMN_STEP, Constraints
from milp_planner.pricing.options import BY_MACHINE, WHOLE_ROWS, Choice
from milp_planner.pricing.site import Site, TableTraits

LEAST_WIDTH = 32
"""Narrowest column shard offered by default: narrower rows are no cheaper to read."""


def column_cuts(dim: int, allowed: tuple[int, ...] | None) -> Iterator[tuple[int, int]]:
    """Legal cuts of a table into columns, as (width, shards), two shards or more.

    Widths are multiples of 4. If ``allowed`` lists widths, cuts have those, and the last shard
    takes the remaining columns. Otherwise, for every number of shards that divides the columns or
    is a power of two, there is the most even cut whose width is at least 32.
    """
    if allowed is not None:
        for width in sorted(set(allowed), reverse=True):
            if width < dim and width % COLUMN_STEP == 0:
                yield width, math.ceil(dim / width)
        return
    for shards in range(2, dim // LEAST_WIDTH + 1):
        if dim % shards and shards & (shards - 1):
            continue
        width = math.ceil(dim / shards / COLUMN_STEP) * COLUMN_STEP
        if width >= LEAST_WIDTH and math.ceil(dim / width) == shards:
            yield width, shards


def is_even(dim: int, width: int, shards: int) -> bool:
    """Whether no narrower legal width gives as many shards."""
    return width == math.ceil(dim / shards / COLUMN_STEP) * COLUMN_STEP


def why_not(sharding: str, site: Site, allowed: tuple[str, ...] | None) -> str:
    """Why TorchRec's sharding type is not offered on a cluster; empty if it is."""
    machines, groups = len(site.machine_ranks), len(site.row_groups)
    if sharding == "grid_shard" and groups < 2:
        of = "machines" if machines == groups else f"groups of {machines} machines"
        return f"needs two {of} or more"
    same = {"table_row_wise": "row_wise", "table_column_wise": "column_wise"}.get(sharding)
    alone = (groups if sharding == "table_row_wise" else machines) == 1
    if alone and same and (allowed is None or same in allowed):
        where = "a single machine" if machines == 1 else "a single group of machines"
        return f"the same placement as {same} on {where}"
    return ""


def no_shape(traits: TableTraits) -> str:
    """Why a sharding type has no shape on the allowed ranks."""
    if traits.constraints.ranks or traits.constraints.pin:
        return "none of its placements lies on the ranks that the constraints allow"
    return (
        f"{traits.dim} columns cannot be cut into shards of a multiple of {COLUMN_STEP} columns "
        f"({LEAST_WIDTH} or more unless column_widths says otherwise) that the ranks can take"
    )


def shapes(base: Choice, traits: TableTraits, site: Site) -> Iterator[Choice]:
    """Every cut of one sharding type, restricted to the ranks that the constraints allow.

    ``base`` is the whole table in that sharding type.
    """
    nodes = traits.constraints.nodes if base.sharding == "table_row_wise" else (1,)
    cut = _cut(base, traits, site) if 1 in nodes else ()
    whole = [(base.width, base.columns)]
    wide = (shape for n in nodes if n > 1 for shape in _over_groups(base, site, whole, n))
    for shape in (*cut, *wide):
        placed = _on_allowed_ranks(shape, traits.constraints, site)
        if placed is not None:
            yield placed


def _cut(base: Choice, traits: TableTraits, site: Site) -> Iterator[Choice]:
    sharding, sizes = base.sharding, sorted({len(ranks) for ranks in site.machine_ranks})
    if sharding in ("data_parallel", "table_wise", "row_wise"):
        yield base
        return
    most = {"column_wise": site.ranks, "table_column_wise": sizes[-1]}.get(sharding, 0)
    cuts = list(column_cuts(traits.dim, traits.constraints.column_widths))
    if sharding in WHOLE_ROWS:
        for width, shards in cuts:
            if shards <= most:
                yield replace(
                    base, width=width, columns=shards, even=is_even(traits.dim, width, shards)
                )
        return
    if len(site.row_groups) < len(site.machine_ranks):
        even = [(width, shards) for width, shards in cuts if traits.dim % width == 0]
        yield from _over_groups(base, site, [(traits.dim, 1)] if sharding != "grid_shard" else even)
        return
    for size in sizes:
        members = tuple(i for i, r in enumerate(site.machine_ranks) if len(r) == size)
        place = replace(base, machine_ranks=size, machines=members if len(sizes) > 1 else None)
        if sharding == "table_row_wise":
            yield place
            continue
        for width, shards in cuts:
            if shards <= len(members) and traits.dim % width == 0:
                yield replace(place, width=width, columns=shards)


MOST_GROUPINGS = 64
"""Most sets of row groups offered for a grid cut; beyond, only sets of consecutive groups are."""


def _over_groups(
    base: Choice, site: Site, cuts: Sequence[tuple[int, int]], nodes: int = 1
) -> Iterator[Choice]:
    """Row splits over several machines: one option for every row group, or set of row groups.

    An Instance has no kind of place for a group of machines, so the options list ranks. Rows may be
    split over several groups (``nodes``, TorchRec's num_nodes). The exchange then keeps its two
    steps: sums inside each group, then between groups. Every rank holds as many sums, and sends as
    many, as if one group had all the rows.
    """
    by_size: dict[int, list[int]] = {}
    for index, ranks in enumerate(site.row_groups):
        by_size.setdefault(len(ranks), []).append(index)
    for size, groups in by_size.items():
        for width, shards in cuts:
            for chosen in _sets(groups, shards * nodes):
                members = tuple(rank for group in chosen for rank in site.row_groups[group])
                yield replace(
                    base, width=width, columns=shards, machine_ranks=size * nodes, groups=chosen,
                    members=members, nodes=nodes,
                )  # fmt: skip


def _sets(groups: Sequence[int], size: int) -> Iterator[tuple[int, ...]]:
    if math.comb(len(groups), size) <= MOST_GROUPINGS:
        yield from combinations(groups, size)
        return
    for first in range(0, len(groups) - size + 1, size):
        yield tuple(groups[first : first + size])


def _on_allowed_ranks(shape: Choice, limits: Constraints, site: Site) -> Choice | None:
    pinned = limits.pin.ranks if limits.pin is not None else None
    allowed = limits.ranks if pinned is None else tuple(dict.fromkeys(pinned))
    if allowed is None:
        return shape
    if any(rank >= site.ranks for rank in allowed):
        return None
    if shape.sharding in ("row_wise", "data_parallel"):
        return shape if len(set(allowed)) == site.ranks else None
    if shape.members is not None:
        inside = set(shape.members) <= set(allowed)
        return shape if inside and (pinned is None or len(allowed) == len(shape.members)) else None
    if shape.sharding in BY_MACHINE or (shape.sharding == "table_column_wise" and pinned is None):
        return _on_whole_machines(shape, allowed, site, pinned is not None)
    if pinned is None:
        return replace(shape, ranks=tuple(sorted(set(allowed))))
    if len(pinned) != shape.columns:
        return None
    if shape.sharding == "table_column_wise" and not _one_machine(pinned, site):
        return None
    return replace(shape, pinned=tuple(pinned))


def _on_whole_machines(
    shape: Choice, allowed: tuple[int, ...], site: Site, exactly: bool
) -> Choice | None:
    """Restrict to machines all of whose ranks are allowed; a pin must name exactly as many."""
    inside = [i for i, ranks in enumerate(site.machine_ranks) if set(ranks) <= set(allowed)]
    if shape.machines is not None:
        inside = [i for i in inside if i in shape.machines]
    need = shape.columns if shape.sharding in BY_MACHINE else 1
    if len(inside) < need or (exactly and len(allowed) != need * shape.machine_ranks):
        return None
    return replace(shape, machines=tuple(inside))


def _one_machine(ranks: tuple[int, ...], site: Site) -> bool:
    return any(set(ranks) <= set(machine) for machine in site.machine_ranks)
