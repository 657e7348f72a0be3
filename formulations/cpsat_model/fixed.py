"""Tables held on given ranks: by a pin, or because they do not move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from ortools.sat.python import cp_model

from formulations.cpsat_model.variables import Variables
from formulations.instance import BlockView, IntArray, Where

Ranks = Sequence[Sequence[int]]


def pin_ranks(variables: Variables) -> None:
    """Every pin that names ranks: its blocks sit exactly there (each as a multiset).

    A pin's option needs no row: all others of its table were removed.
    """
    for pin in variables.instance.pins:
        if pin.ranks is None or variables.option[pin.option] < 0:
            continue
        equalities = sits_on(variables, pin.option, pin.ranks)
        if equalities is None:
            variables.cp.add_bool_or([])
            continue
        for equality in equalities:
            variables.cp.add(equality)


def sits_on(
    variables: Variables, option: int, ranks: Ranks
) -> list[cp_model.BoundedLinearExpression] | None:
    """Equalities that put the blocks of an option on given ranks; None where that cannot be.

    Any rank kind: Σ_k n_{k,r} = how often r is named.  Machines: m_q, y_q likewise.
    """
    instance = variables.instance
    blocks = instance.blocks_of(option)
    if len(blocks) != len(ranks):
        return None
    found: list[cp_model.BoundedLinearExpression] = []
    for index, wanted in zip(blocks, ranks, strict=True):
        equalities = _block_sits_on(variables, instance.block(index), Counter(map(int, wanted)))
        if equalities is None:
            return None
        found.extend(equalities)
    return found


def _block_sits_on(
    variables: Variables, block: BlockView, wanted: Counter[int]
) -> list[cp_model.BoundedLinearExpression] | None:
    instance = variables.instance
    if block.where == Where.EVERY_RANK:
        return [] if wanted == Counter(range(instance.num_ranks)) else None
    if block.where == Where.LIST:
        return [] if wanted == Counter(block.places or ()) else None
    if block.where == Where.CLUSTER:
        return [] if not wanted else None
    if block.where == Where.ONE_MACHINE:
        return _machines_are(variables, block, wanted)
    shares = {r: variables.shares_on(block.index, r) for r in range(instance.num_ranks)}
    if wanted.total() != block.count or any(not shares.get(r) for r in wanted):
        return None
    return [variables.sum(s) == wanted[r] for r, s in shares.items() if s]


def _machines_are(
    variables: Variables, block: BlockView, wanted: Counter[int]
) -> list[cp_model.BoundedLinearExpression] | None:
    instance = variables.instance
    found = []
    covered: Counter[int] = Counter()
    for machine, ranks in enumerate(instance.machines):
        times = wanted[ranks[0]]
        covered.update(dict.fromkeys(ranks, times))
        taken = variables.machines.get((block.index, machine))
        if taken is not None:
            found.append(variables.items[taken] == times)
        elif times:
            return None
    return found if +covered == +wanted else None


def limit_moves(variables: Variables) -> None:
    """At most so many tables, and so many bytes, move against the current plan.

    v_t ∈ {0, 1} for every table of it:  v_t = 0 ⇒ its option and ranks are the current ones;
    Σ v_t ≤ max_moved_tables;  v_t = 1 ⇒ b_t ≥ bytes of its new shards;  Σ b_t ≤ max_moved_bytes.
    """
    instance = variables.instance
    if instance.max_moved_tables is None and instance.max_moved_bytes is None:
        return
    for now in instance.current:
        variables.moved[now.table] = variables.new(1)
        _stay(variables, variables.moved[now.table], now.option, now.ranks)
    moved = list(variables.moved.values())
    if instance.max_moved_tables is not None:
        variables.cp.add(variables.sum(moved) <= instance.max_moved_tables)
    if instance.max_moved_bytes is not None:
        _limit_bytes(variables, instance.max_moved_bytes)


def _stay(variables: Variables, moved: int, option: int, ranks: Ranks) -> None:
    item = variables.items[moved]
    equalities = None
    if option >= 0 and variables.option[option] >= 0:
        equalities = sits_on(variables, option, ranks)
    if equalities is None:
        variables.cp.add(item == 1)
        return
    variables.cp.add_implication(~item, variables.items[int(variables.option[option])])
    for equality in equalities:
        variables.cp.add(equality).only_enforce_if(~item)


def _limit_bytes(variables: Variables, limit: int) -> None:
    weight = _bytes_a_unit(variables)
    owner = variables.instance.table_of[np.asarray(variables.option_of)]
    for table, moved in variables.moved.items():
        mine = np.flatnonzero((owner == table) & (weight > 0))
        size = variables.new(limit)
        row = variables.weighted(mine, weight[mine]) <= variables.items[size]
        variables.cp.add(row).only_enforce_if(variables.items[moved])
        variables.moved_bytes[table] = size
    variables.cp.add(variables.sum(list(variables.moved_bytes.values())) <= limit)


def _bytes_a_unit(variables: Variables) -> IntArray:
    """Moving bytes of the shards one unit of each variable places, int64 array [variables]."""
    terms, move = variables.terms, variables.instance.shard_move
    weight = np.zeros(len(variables.items), dtype=np.int64)
    for var, entry, count in (
        (terms.var, terms.entry, terms.sign),
        (terms.uniform_var, terms.uniform_entry, variables.instance.num_ranks),
        (terms.off_var, terms.off_entry, terms.off_count),
    ):
        index = np.asarray(entry, dtype=np.int64)
        np.add.at(weight, np.asarray(var, dtype=np.int64), move[index] * np.asarray(count))
    return weight
