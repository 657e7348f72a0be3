"""Validation of an Instance; every violation is reported in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from formulations.errors import InstanceError
from formulations.instance import (
    MAX_ACTIVITY,
    MAX_VALUE,
    BlockView,
    Instance,
    IntArray,
    Objective,
    Pin,
    Scope,
    Where,
)

#: Most shards of one block that may be listed one by one.
MAX_LISTED = 10_000_000


def validate(instance: Instance) -> None:
    """Check an Instance once, when it is built or read.

    Raises
    ------
    InstanceError
        Naming the table, option and block, what was found and what is allowed.
    """
    _machines(instance)
    _resources(instance)
    _names(instance)
    _values(instance)
    _hidden(instance)
    _lengths(instance)
    check_blocks(instance)
    _activity(instance)
    _constraints(instance)


def _lengths(instance: Instance) -> None:
    """Refuse runs of shards longer than any cluster, before they are expanded."""
    total = np.append(0, np.cumsum(instance.shard_repeat.astype(np.float64)))
    listed = total[instance.block_shards[1:]] - total[instance.block_shards[:-1]]
    listed[np.diff(instance.block_shards) < 2] = 0
    for block in np.flatnonzero(listed > MAX_LISTED)[:1]:
        raise InstanceError(
            f"{at_block(instance, int(block))}: its shards repeat {listed[block]:.3g} times "
            f"in all; allowed: up to {MAX_LISTED}"
        )


def _hidden(instance: Instance) -> None:
    asked, given = instance.objective == Objective.PIPELINED_STEP, instance.hidden
    if asked and len(given) != len(instance.phases):
        raise InstanceError(
            f"hidden: {len(given)} times for {len(instance.phases)} phases; the objective "
            "pipelined_step needs one for each"
        )
    if given and not asked:
        raise InstanceError(
            f"hidden: has a meaning under the objective pipelined_step alone, found "
            f"{instance.objective.value}"
        )
    if any(not 0 <= time < MAX_VALUE for time in given):
        raise InstanceError(f"hidden: times must be in [0, 2^53), found {list(given)}")


def _machines(instance: Instance) -> None:
    ranks = [r for m in instance.machines for r in m]
    if not ranks:
        raise InstanceError("machines: at least one rank is needed")
    if sorted(ranks) != list(range(len(ranks))):
        raise InstanceError(
            f"machines: must partition the ranks 0…{len(ranks) - 1}, found {sorted(ranks)[:10]}…"
        )
    if not all(instance.machines):
        raise InstanceError("machines: every machine needs at least one rank")
    if not instance.phases or len(set(instance.phases)) != len(instance.phases):
        raise InstanceError("phases: at least one name, none twice")


def _resources(instance: Instance) -> None:
    places = {
        Scope.RANK: instance.num_ranks,
        Scope.MACHINE: len(instance.machines),
        Scope.CLUSTER: 1,
    }
    names = [r.name for r in instance.resources]
    if len(set(names)) != len(names):
        raise InstanceError("resources: a name appears twice")
    for resource in instance.resources:
        want = places[resource.scope]
        if len(resource.capacity) != want:
            raise InstanceError(
                f"resource {resource.name!r}: {len(resource.capacity)} capacities for "
                f"{want} places of scope {resource.scope.value!r}"
            )
        if len(resource.capacity) and (
            resource.capacity.min() < 0 or resource.capacity.max() >= MAX_VALUE
        ):
            raise InstanceError(f"resource {resource.name!r}: capacities must be in [0, 2^53)")


def _names(instance: Instance) -> None:
    if len(set(instance.table_names)) != instance.num_tables:
        seen: set[str] = set()
        twice = next(n for n in instance.table_names if n in seen or seen.add(n))  # type: ignore[func-returns-value]
        raise InstanceError(f"table {twice!r} appears twice; table names are unique")
    for t, name in enumerate(instance.table_names):
        options = instance.options_of(t)
        if not options:
            raise InstanceError(f"table {name!r} has no options; at least one is needed")
        names = [instance.option_names[o] for o in options]
        if len(set(names)) != len(names):
            twice = next(n for i, n in enumerate(names) if n in names[:i])
            raise InstanceError(f"table {name!r}: option {twice!r} appears twice")
    empty = np.flatnonzero(np.diff(instance.option_blocks) == 0)
    if len(empty):
        raise InstanceError(f"{at_option(instance, int(empty[0]))}: an option needs a block")


def _values(instance: Instance) -> None:
    _entries(instance, "use", instance.shard_use, lambda v: (v >= 0) & (v < MAX_VALUE), "[0, 2^53)")
    _entries(
        instance, "move_bytes", instance.shard_move, lambda v: (v >= 0) & (v < MAX_VALUE),
        "[0, 2^53)",
    )  # fmt: skip
    _entries(instance, "repeat", instance.shard_repeat, lambda v: v >= 1, "1 or more")
    if instance.objective == Objective.TOTAL:
        _entries(
            instance, "cost", instance.shard_cost, lambda v: abs(v) < MAX_VALUE, "(-2^53, 2^53)"
        )
    else:
        _entries(
            instance, "cost", instance.shard_cost, lambda v: (v >= 0) & (v < MAX_VALUE),
            "[0, 2^53) (negative only under the objective total)",
        )  # fmt: skip
    if instance.num_blocks and instance.block_count.min() < 1:
        block = int(np.argmin(instance.block_count))
        raise InstanceError(f"{at_block(instance, block)}: count must be 1 or more")


def _entries(
    instance: Instance,
    what: str,
    values: IntArray,
    good: Callable[[IntArray], np.ndarray],
    allowed: str,
) -> None:
    bad = ~good(values)
    if bad.any():
        entry = int(np.argwhere(bad)[0][0])
        block = int(np.searchsorted(instance.block_shards, entry, side="right")) - 1
        found = int(values[tuple(np.argwhere(bad)[0])])
        raise InstanceError(f"{at_block(instance, block)}: {what} is {found}, allowed: {allowed}")


def _activity(instance: Instance) -> None:
    """Refuse numbers whose sums could exceed 62 bits, so that every later sum is exact in int64."""
    weight = _shards_per_entry(instance)
    for what, values in (("cost", np.abs(instance.shard_cost)), ("use", instance.shard_use)):
        per_entry = values.astype(np.float64) * weight[:, None]
        total = 0.0
        if len(per_entry):
            per_block = np.add.reduceat(per_entry, instance.block_shards[:-1])
            per_option = np.add.reduceat(per_block, instance.option_blocks[:-1]).sum(axis=1)
            total = float(np.maximum.reduceat(per_option, instance.table_options[:-1]).sum())
        if what == "cost":
            total += float(instance.num_ranks * sum(instance.hidden))
        if total >= MAX_ACTIVITY:
            raise InstanceError(
                f"the {what}s add up to {total:.3g}, beyond 2^62: use a coarser unit"
            )


def _shards_per_entry(instance: Instance) -> np.ndarray:
    """Upper bound on the number of shards that a shard entry represents, float array [entries]."""
    times = np.maximum(instance.block_count, 1)
    spread = np.isin(instance.block_where, [Where.EVERY_RANK, Where.ONE_MACHINE])
    times = np.where(spread, times * instance.num_ranks, times)
    lists = instance.block_where == Where.LIST
    sizes = np.asarray([len(s) for s in instance.place_sets] + [1])
    times = np.where(lists, sizes[instance.block_places], times)
    entries = np.diff(instance.block_shards)
    copies = np.where(instance.block_where == Where.ONE_MACHINE, instance.block_count, 1)
    own = instance.shard_repeat * np.repeat(
        copies, entries
    )  # one entry for each position: its run length
    shared = np.repeat(entries == 1, entries)
    return np.where(shared, np.repeat(times, entries), own).astype(np.float64)


def _constraints(instance: Instance) -> None:
    for table, option in [(p.table, p.option) for p in instance.pins] + list(instance.forbidden):
        if not 0 <= table < instance.num_tables or option not in instance.options_of(table):
            raise InstanceError(f"pins/forbidden: option {option} is not one of table {table}")
    tables = [p.table for p in instance.pins]
    if len(set(tables)) != len(tables):
        raise InstanceError("pins: a table is pinned twice")
    for pin in instance.pins:
        _pinned_ranks(instance, pin)
    for now in instance.current:
        if any(rank < 0 for block in now.ranks for rank in block):
            name = instance.table_names[now.table]
            raise InstanceError(f"current.{name}: its ranks must be 0 or more")
    for limit, name in (
        (instance.max_moved_tables, "max_moved_tables"),
        (instance.max_moved_bytes, "max_moved_bytes"),
    ):
        if limit is not None and limit < 0:
            raise InstanceError(f"{name}: must be 0 or more, found {limit}")
        if limit is not None and not instance.current:
            raise InstanceError(f"{name}: needs 'current', the plan that moves are counted against")


def _pinned_ranks(instance: Instance, pin: Pin) -> None:
    blocks = len(instance.blocks_of(pin.option))
    if pin.ranks is not None and len(pin.ranks) != blocks:
        raise InstanceError(
            f"pins: {at_option(instance, pin.option)}: ranks for {len(pin.ranks)} blocks, it has "
            f"{blocks}"
        )
    ranks = [rank for block in pin.ranks or () for rank in block]
    if any(not 0 <= rank < instance.num_ranks for rank in ranks):
        raise InstanceError(
            f"pins: {at_option(instance, pin.option)}: its ranks must be in "
            f"0…{instance.num_ranks - 1}"
        )


def check_blocks(instance: Instance) -> None:
    """Check all blocks, rule by rule, and report the first block that breaks the first broken rule.

    Raises
    ------
    InstanceError
        Naming the table, option and block, what was found and what is allowed.
    """
    for broken, sentence in _block_rules(instance):
        if broken.any():
            block = instance.block(int(np.argmax(broken)))
            raise InstanceError(f"{at_block(instance, block.index)}: {sentence(block)}")


def _block_rules(instance: Instance) -> Iterator[tuple[np.ndarray, Callable[[BlockView], str]]]:
    """For each rule, the blocks that break it, bool array [blocks], and the message for one.

    A rule may rely on the rules before it.
    """
    where, count, places = instance.block_where, instance.block_count, instance.block_places
    low, high = instance.block_shards[:-1], instance.block_shards[1:]
    listed, named = where == Where.LIST, places >= 0
    yield high <= low, lambda _: "at least one shard is needed"
    once = (listed | (where == Where.EVERY_RANK)) & (count != 1)
    yield once, lambda b: f"count must be 1 for {b.where.name.lower()}"
    meaningless = named & np.isin(where, [Where.EVERY_RANK, Where.CLUSTER])
    yield meaningless, lambda b: f"'among' has no meaning for {b.where.name.lower()}"
    yield listed & ~named, lambda _: "a list of ranks is needed"
    sets = [*instance.place_sets, (0,)]  # blocks that name no places (-1) look up this last entry
    unclear = np.asarray([not s or len(set(s)) != len(s) for s in sets])[places]
    machines = instance.by_machine
    limit = np.where(machines, len(instance.machines), instance.num_ranks)

    def kind(block: BlockView) -> str:
        return "machines" if machines[block.index] else "ranks"

    yield unclear, lambda b: f"its {kind(b)} must be a non-empty list without repeats"
    least, most = (np.asarray([how(s, default=0) for s in sets])[places] for how in (min, max))
    beyond = (least < 0) | (most >= limit)
    yield beyond, lambda b: f"its {kind(b)} must be in 0…{limit[b.index] - 1}"
    fewest, largest = _positions(instance, listed, sets)
    total = np.append(0, np.cumsum(instance.shard_repeat))
    given = total[high] - total[low]
    yield (
        (given != 1) & ((given != fewest) | (given != largest)),
        lambda b: (
            f"{given[b.index]} shards for "
            f"{'/'.join(map(str, sorted({int(fewest[b.index]), int(largest[b.index])})))} "
            "positions (give one that all share, or one per position)"
        ),
    )
    placed = [i for i, r in enumerate(instance.resources) if r.scope != Scope.CLUSTER]
    used = np.append(0, np.cumsum(instance.shard_use[:, placed].any(axis=1)))
    astray = (where == Where.CLUSTER) & (used[high] > used[low])
    yield astray, lambda _: "a cluster block may use cluster resources only"


def _positions(
    instance: Instance, listed: np.ndarray, sets: Sequence[Sequence[int]]
) -> tuple[IntArray, IntArray]:
    """Fewest and most shards a block may list one by one, int64 arrays [blocks]."""
    where, places = instance.block_where, instance.block_places
    fewest = np.where(where == Where.EVERY_RANK, instance.num_ranks, instance.block_count)
    fewest[listed] = np.asarray([len(s) for s in sets])[places[listed]]
    largest, whole = fewest.copy(), where == Where.ONE_MACHINE
    sizes = dict(enumerate(map(len, instance.machines)))
    at = [[sizes.get(m, 0) for m in s] or [0] for s in instance.place_sets]
    at.append([*sizes.values()])
    fewest[whole] = np.asarray([*map(min, at)])[places[whole]]
    largest[whole] = np.asarray([*map(max, at)])[places[whole]]
    return fewest, largest


def at_option(instance: Instance, option: int) -> str:
    """An option as error messages name it."""
    table = int(np.searchsorted(instance.table_options, option, side="right")) - 1
    return f"table {instance.table_names[table]!r}, option {instance.option_names[option]!r}"


def at_block(instance: Instance, block: int) -> str:
    """A block as error messages name it."""
    option = int(np.searchsorted(instance.option_blocks, block, side="right")) - 1
    return f"{at_option(instance, option)}, block {block - int(instance.option_blocks[option])}"
