"""Where the shards of a chosen option sit: integer variables for each kind of place."""

from __future__ import annotations

from collections import Counter

import numpy as np

from formulations.cpsat_model.variables import Variables
from formulations.instance import BlockView, Instance, IntArray, Where


def place_blocks(variables: Variables) -> None:
    """Add the placement variables and constraints of every block of every option kept."""
    instance = variables.instance
    simple = (instance.block_where == Where.EVERY_RANK) & (np.diff(instance.block_shards) == 1)
    x = variables.option[instance.option_of]
    plain = np.flatnonzero(simple & (x >= 0))
    variables.terms.uniform_var.extend(x[plain].tolist())
    variables.terms.uniform_entry.extend(instance.block_shards[plain].tolist())
    for index in np.flatnonzero(~simple & (x >= 0)):
        _PLACE[Where(int(instance.block_where[index]))](
            variables, int(x[index]), instance.block(int(index))
        )


def _every_rank(variables: Variables, x: int, block: BlockView) -> None:
    """The commonest shard counts as uniform; ranks that differ get a correction."""
    common = Counter(block.entries.tolist()).most_common(1)[0][0]
    variables.terms.uniform_var.append(x)
    variables.terms.uniform_entry.append(common)
    for rank, entry in enumerate(block.entries.tolist()):
        if entry != common:
            variables.terms.add(x, entry, rank)
            variables.terms.add(x, common, rank, sign=-1)


def _list(variables: Variables, x: int, block: BlockView) -> None:
    for position, rank in enumerate(block.places or ()):
        variables.terms.add(x, block.entry(position), rank)


def _cluster(variables: Variables, x: int, block: BlockView) -> None:
    counts = Counter(block.entry(i) for i in range(block.count))
    for entry, count in counts.items():
        variables.terms.off_var.append(x)
        variables.terms.off_entry.append(entry)
        variables.terms.off_count.append(count)


def _any_rank(variables: Variables, x: int, block: BlockView) -> None:
    """Σ_r n_{k,r} = (shards of kind k)·x;  distinct: Σ_k n_{k,r} ≤ 1."""
    ranks = range(variables.instance.num_ranks) if block.places is None else block.places
    for kind, positions in enumerate(_kinds(variables, block)):
        shares = _shares(variables, x, block, kind, ranks)
        variables.cp.add(variables.sum(shares) == len(positions) * variables.items[x])
    _distinct(variables, block, ranks)


def _any_rank_of_one_machine(variables: Variables, x: int, block: BlockView) -> None:
    """Σ_q y_q = x;  Σ_{r of q} n_{k,r} = (shards of kind k)·y_q."""
    instance = variables.instance
    machines = range(len(instance.machines)) if block.places is None else block.places
    option = variables.option_of[x]
    taken = [variables.new(1, option) for _ in machines]
    variables.machines.update({(block.index, m): y for m, y in zip(machines, taken, strict=True)})
    variables.cp.add(variables.sum(taken) == variables.items[x])
    for kind, positions in enumerate(_kinds(variables, block)):
        for machine, y in zip(machines, taken, strict=True):
            shares = _shares(variables, x, block, kind, instance.machines[machine])
            variables.cp.add(variables.sum(shares) == len(positions) * variables.items[y])
    _distinct(variables, block, [r for m in machines for r in instance.machines[m]])


def _one_machine(variables: Variables, x: int, block: BlockView) -> None:
    """Σ_q m_q = count·x, m_q ≤ 1 where machines must differ; each brings a shard a rank."""
    instance = variables.instance
    machines = range(len(instance.machines)) if block.places is None else block.places
    option, upper = variables.option_of[x], 1 if block.distinct else block.count
    taken = [variables.new(upper, option) for _ in machines]
    variables.cp.add(variables.sum(taken) == block.count * variables.items[x])
    for machine, m in zip(machines, taken, strict=True):
        variables.machines[block.index, machine] = m
        for position, rank in enumerate(instance.machines[machine]):
            variables.terms.add(m, block.entry(position), rank)


def _kinds(variables: Variables, block: BlockView) -> list[list[int]]:
    """Positions of a block grouped by equal shards (same use, cost and moving bytes)."""
    groups: dict[bytes, list[int]] = {}
    for position in range(block.count):
        content = _content(variables.instance, block.entry(position))
        groups.setdefault(content.tobytes(), []).append(position)
    variables.kinds[block.index] = list(groups.values())
    return variables.kinds[block.index]


def _content(instance: Instance, entry: int) -> IntArray:
    return np.concatenate(
        [
            instance.shard_use[entry],
            instance.shard_cost[entry],
            instance.shard_move[entry : entry + 1],
        ]
    )


def _shares(
    variables: Variables, x: int, block: BlockView, kind: int, ranks: range | tuple[int, ...]
) -> list[int]:
    positions = variables.kinds[block.index][kind]
    upper = 1 if block.distinct else len(positions)
    found = []
    for rank in ranks:
        share = variables.new(upper, variables.option_of[x])
        variables.shares[block.index, kind, rank] = share
        variables.terms.add(share, block.entry(positions[0]), rank)
        found.append(share)
    return found


def _distinct(
    variables: Variables, block: BlockView, ranks: range | tuple[int, ...] | list[int]
) -> None:
    if block.distinct and len(variables.kinds[block.index]) > 1:
        for rank in ranks:
            here = [variables.items[v] for v in variables.shares_on(block.index, rank)]
            variables.cp.add_at_most_one(here)


_PLACE = {
    Where.EVERY_RANK: _every_rank,
    Where.LIST: _list,
    Where.CLUSTER: _cluster,
    Where.ANY_RANK: _any_rank,
    Where.ANY_RANK_OF_ONE_MACHINE: _any_rank_of_one_machine,
    Where.ONE_MACHINE: _one_machine,
}
