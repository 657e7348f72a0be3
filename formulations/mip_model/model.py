"""Variables of the linear model: options, places, and the shards each puts on each rank."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import pulp

from formulations.instance import BlockView, Instance, Where

Key = tuple[int, int, int]


@dataclass
class MipModel:
    """The model and what its variables mean.

    Attributes
    ----------
    check : callable
        Called at every variable and row; raises to give up building.
    problem : pulp.LpProblem
    chosen : dict of option to variable
    on_rank : dict of (block, position, rank) to variable
        Whether the shard at a position of an ``any_rank`` kind of block sits on a rank; where
        all shards are alike, position 0 counts how many do.
    on_machine : dict of (block, machine) to variable
        How often a ``one_machine`` block takes a machine; whether an
        ``any_rank_of_one_machine`` block is on it.
    everywhere : list of (variable, shard entry)
        A unit of the variable puts a shard on every rank.
    somewhere : dict of rank to list of (variable, shard entry)
    nowhere : list of (variable, shard entry, count)
        Shards on no rank.
    """

    instance: Instance
    check: Callable[[], None]
    problem: pulp.LpProblem = field(default_factory=lambda: pulp.LpProblem("milp_planner"))
    chosen: dict[int, pulp.LpVariable] = field(default_factory=dict)
    on_rank: dict[Key, pulp.LpVariable] = field(default_factory=dict)
    on_machine: dict[tuple[int, int], pulp.LpVariable] = field(default_factory=dict)
    everywhere: list[tuple[pulp.LpVariable, int]] = field(default_factory=list)
    somewhere: dict[int, list[tuple[pulp.LpVariable, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    nowhere: list[tuple[pulp.LpVariable, int, int]] = field(default_factory=list)
    table_of: dict[pulp.LpVariable, int] = field(default_factory=dict)
    _count: int = 0

    def whole(self, upper: int) -> pulp.LpVariable:
        """A new integer variable in 0 … upper."""
        return self._variable(upper, "Integer")

    def real(self) -> pulp.LpVariable:
        """A new continuous variable of at least 0."""
        return self._variable(None, "Continuous")

    def _variable(self, upper: int | None, kind: str) -> pulp.LpVariable:
        self.check()
        self._count += 1
        return self.problem.add_variable(f"v{self._count}", 0, upper, cat=kind)

    def add(self, terms: dict[pulp.LpVariable, float], sense: str, right: float) -> None:
        """Σ coefficient × variable (``<=``, ``==`` or ``>=``) right."""
        self.check()
        senses = {"<=": pulp.LpConstraintLE, "==": pulp.LpConstraintEQ, ">=": pulp.LpConstraintGE}
        expression = pulp.LpAffineExpression(terms)
        self.problem.addConstraint(pulp.LpConstraint(expression, senses[sense], rhs=right))


def build_choices(model: MipModel) -> None:
    """One option a table among those allowed; every block of it placed."""
    instance = model.instance
    for table in range(instance.num_tables):
        options = [o for o in instance.options_of(table) if instance.allowed[o]]
        for option in options:
            model.chosen[option] = model.whole(1)
        model.add({model.chosen[o]: 1 for o in options}, "==", 1)
        for option in options:
            for index in instance.blocks_of(option):
                _place(model, model.chosen[option], instance.block(index))


def _place(model: MipModel, x: pulp.LpVariable, block: BlockView) -> None:
    instance = model.instance
    if block.where == Where.EVERY_RANK and block.shared:
        model.everywhere.append((x, int(block.entries[0])))
    elif block.where in (Where.EVERY_RANK, Where.LIST):
        ranks = range(instance.num_ranks) if block.places is None else block.places
        for position, rank in enumerate(ranks):
            model.somewhere[rank].append((x, block.entry(position)))
    elif block.where == Where.CLUSTER:
        shards = range(1 if block.shared else block.count)
        times = block.count if block.shared else 1
        model.nowhere.extend((x, block.entry(i), times) for i in shards)
    elif block.where == Where.ONE_MACHINE:
        _place_machines(model, x, block)
    elif block.where == Where.ANY_RANK:
        ranks = range(instance.num_ranks) if block.places is None else block.places
        _spread(model, x, block, ranks)
        _apart(model, block, ranks)
    else:
        _place_on_one_machine(model, x, block)


def _place_machines(model: MipModel, x: pulp.LpVariable, block: BlockView) -> None:
    instance = model.instance
    machines = range(len(instance.machines)) if block.places is None else block.places
    for machine in machines:
        taken = model.whole(1 if block.distinct else block.count)
        model.on_machine[block.index, machine] = taken
        for local, rank in enumerate(instance.machines[machine]):
            model.somewhere[rank].append((taken, block.entry(local)))
    taken_sum = {model.on_machine[block.index, m]: 1.0 for m in machines}
    model.add({**taken_sum, x: -block.count}, "==", 0)


def _place_on_one_machine(model: MipModel, x: pulp.LpVariable, block: BlockView) -> None:
    """The shards sit on ranks of the machine taken: spread over all, none elsewhere."""
    instance = model.instance
    machines = range(len(instance.machines)) if block.places is None else block.places
    for machine in machines:
        model.on_machine[block.index, machine] = model.whole(1)
    model.add({**{model.on_machine[block.index, m]: 1.0 for m in machines}, x: -1}, "==", 0)
    ranks = [r for m in machines for r in instance.machines[m]]
    _spread(model, x, block, ranks)
    _apart(model, block, ranks)
    for machine in machines:
        here = set(instance.machines[machine])
        shards = {v: 1.0 for (b, _, r), v in _of_block(model, block, ranks) if r in here}
        model.add({**shards, model.on_machine[block.index, machine]: -block.count}, "<=", 0)


def _spread(model: MipModel, x: pulp.LpVariable, block: BlockView, ranks: Iterable[int]) -> None:
    """Each shard on exactly one rank when its option is chosen (alike shards are counted)."""
    positions = 1 if block.shared else block.count
    each = block.count if block.shared else 1
    for position in range(positions):
        row: dict[pulp.LpVariable, float] = {}
        for rank in ranks:
            share = model.whole(1 if block.distinct else each)
            model.on_rank[block.index, position, rank] = share
            model.somewhere[rank].append((share, block.entry(position)))
            row[share] = 1
        model.add({**row, x: -each}, "==", 0)


def _apart(model: MipModel, block: BlockView, ranks: Iterable[int]) -> None:
    if block.distinct and not block.shared:
        for rank in ranks:
            here = {v: 1.0 for (_, _, r), v in _of_block(model, block, [rank])}
            model.add(here, "<=", 1)


def _of_block(
    model: MipModel, block: BlockView, ranks: Iterable[int]
) -> list[tuple[Key, pulp.LpVariable]]:
    positions = 1 if block.shared else block.count
    keys = [(block.index, p, r) for p in range(positions) for r in ranks]
    return [(key, model.on_rank[key]) for key in keys]
