"""Rows that tie tables to each other, to given ranks, and to the plan in production."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import pulp

from formulations.instance import BlockView, Current, Where
from formulations.mip_model.model import MipModel

#: (variables that must add up to at least a number, the number)
Demand = tuple[list[pulp.LpVariable], int]


def fuse(model: MipModel) -> None:
    """One level for each fusion group; an option needs the level it names."""
    instance = model.instance
    level: dict[tuple[int, int], pulp.LpVariable] = {}
    by_table: dict[tuple[int, int, int], list[pulp.LpVariable]] = defaultdict(list)
    for option, x in model.chosen.items():
        group, value = int(instance.option_group[option]), int(instance.option_level[option])
        if group >= 0:
            level.setdefault((group, value), model.whole(1))
            by_table[group, value, int(instance.table_of[option])].append(x)
    for (group, value, _), own in by_table.items():
        model.add({**dict.fromkeys(own, 1.0), level[group, value]: -1}, "<=", 0)
    for group in {g for g, _ in level}:
        model.add({v: 1.0 for (g, _), v in level.items() if g == group}, "<=", 1)


def pin(model: MipModel) -> None:
    """Blocks of pinned options sit on the ranks the pin names."""
    for wish in model.instance.pins:
        if wish.ranks is None or wish.option not in model.chosen:
            continue
        demands = _demands(model, wish.option, wish.ranks)
        if demands is None:
            model.add({model.chosen[wish.option]: 1.0}, "<=", 0)
            continue
        for variables, number in demands:
            model.add(dict.fromkeys(variables, 1.0), ">=", number)


def limit_moves(model: MipModel) -> None:
    """Count tables, and bytes, that move against the current plan."""
    instance = model.instance
    if instance.max_moved_tables is None and instance.max_moved_bytes is None:
        return
    moved = {now.table: _moved(model, now) for now in instance.current}
    if instance.max_moved_tables is not None:
        row = {v: 1.0 for v, _ in moved.values()}
        model.add(row, "<=", instance.max_moved_tables)
    if instance.max_moved_bytes is not None:
        _limit_bytes(model, moved, instance.max_moved_bytes)


def _moved(model: MipModel, now: Current) -> tuple[pulp.LpVariable, int]:
    """A binary that is 1 unless the table stays, and the bytes of the table where it is."""
    moved = model.whole(1)
    demands = None
    if now.option in model.chosen:
        demands = _demands(model, now.option, now.ranks)
    if demands is None:
        model.add({moved: 1.0}, ">=", 1)
        return moved, 0
    model.add({model.chosen[now.option]: 1.0, moved: 1.0}, ">=", 1)
    for variables, number in demands:
        model.add({**dict.fromkeys(variables, 1.0), moved: float(number)}, ">=", number)
    return moved, _bytes_at(model, now)


def _limit_bytes(
    model: MipModel, moved: dict[int, tuple[pulp.LpVariable, int]], limit: int
) -> None:
    """Σ_t (bytes of the table as placed − bytes where it was·(1 − moved)) ≤ limit.

    Where a table stays, both are equal: nothing is left of it.
    """
    row: dict[pulp.LpVariable, float] = defaultdict(float)
    stays = 0
    for variable, entry, count in _shards(model):
        if _table(model, variable) in moved:
            row[variable] += count * int(model.instance.shard_move[entry])
    for variable, size in moved.values():
        row[variable] += size
        stays += size
    unit = float(max(1, limit, *row.values()))
    model.add({v: c / unit for v, c in row.items()}, "<=", (limit + stays) / unit)


def _shards(model: MipModel) -> Iterator[tuple[pulp.LpVariable, int, int]]:
    for variable, entry in model.everywhere:
        yield variable, entry, model.instance.num_ranks
    for shards in model.somewhere.values():
        for variable, entry in shards:
            yield variable, entry, 1
    yield from model.nowhere


def _table(model: MipModel, variable: pulp.LpVariable) -> int:
    if not model.table_of:
        instance = model.instance
        for option, x in model.chosen.items():
            model.table_of[x] = int(instance.table_of[option])
        for (block, *_), v in [*model.on_rank.items(), *model.on_machine.items()]:
            model.table_of[v] = int(instance.table_of[instance.option_of[block]])
    return model.table_of[variable]


def _bytes_at(model: MipModel, now: Current) -> int:
    """Moving bytes of all shards of the current option where it is placed."""
    instance, total = model.instance, 0
    for index, ranks in zip(instance.blocks_of(now.option), now.ranks, strict=True):
        block = instance.block(index)
        times = block.count if block.where == Where.CLUSTER else len(ranks)
        for position in range(times):
            local = position % len(block.entries)
            total += int(instance.shard_move[block.entries[local]])
    return total


def _demands(model: MipModel, option: int, ranks: Sequence[Sequence[int]]) -> list[Demand] | None:
    """What puts the blocks of a chosen option on given ranks; None where they cannot be."""
    instance = model.instance
    blocks = instance.blocks_of(option)
    if len(ranks) != len(blocks):
        return None
    found: list[Demand] = []
    for index, named in zip(blocks, ranks, strict=True):
        demands = _block_demands(model, instance.block(index), Counter(named))
        if demands is None:
            return None
        found += demands
    return found


def _block_demands(model: MipModel, block: BlockView, named: Counter[int]) -> list[Demand] | None:
    instance = model.instance
    if block.where in (Where.EVERY_RANK, Where.LIST, Where.CLUSTER):
        every = range(instance.num_ranks) if block.where == Where.EVERY_RANK else ()
        return [] if named == Counter(block.places or every) else None
    if block.where == Where.ONE_MACHINE:
        return _machine_demands(model, block, named)
    if named.total() != block.count:
        return None
    positions = range(1 if block.shared else block.count)
    found = []
    for rank, number in named.items():
        keys = [(block.index, p, rank) for p in positions]
        if any(k not in model.on_rank for k in keys):
            return None
        found.append(([model.on_rank[k] for k in keys], number))
    return found


def _machine_demands(model: MipModel, block: BlockView, named: Counter[int]) -> list[Demand] | None:
    found: list[Demand] = []
    left = Counter(named)
    for machine, ranks in enumerate(model.instance.machines):
        number = named[ranks[0]]
        if number:
            left.subtract(dict.fromkeys(ranks, number))
            if (block.index, machine) not in model.on_machine:
                return None
            found.append(([model.on_machine[block.index, machine]], number))
    fits = not any(left.values()) and sum(n for _, n in found) == block.count
    return found if fits else None
