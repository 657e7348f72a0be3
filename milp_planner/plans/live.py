"""What TorchRec can change in a plan without a restart: the moves that ``DMP.reshard`` executes.

A call rebuilds the lookups of a whole ``EmbeddingBagCollection``, so the weights and optimizer
states of all its tables exist twice until the old ones are freed; then columns are copied between
ranks. All pooled tables are taken for one collection, which is the most that can exist twice.

References
----------
torchrec 1.9.2, ``distributed/embeddingbag.py`` (``update_shards``), ``distributed/sharding/
dynamic_sharding.py`` (columns are walked in order; one local shard of a target; row-wise state is
copied whole, by the last writer; ``momentum1`` alone) and ``distributed/sharding_plan.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple, Self

import numpy as np

from formulations.instance import Instance, IntArray, Pin, Resource, Scope
from formulations.result.check import compute_loads
from formulations.result.placement import Placement, current_plan
from milp_planner.drawing.units import listed
from milp_planner.errors import BadInput
from milp_planner.inputs.model import Model
from milp_planner.inputs.table import Table
from milp_planner.plans.compile import Compiled
from milp_planner.pricing.options import Choice

RUNTIMES = ("torchrec",)
"""Runtimes whose moves are known."""
_TARGETS = ("table_wise", "column_wise")
_MODES = ("HBM_ONLY", "HOST_ONLY")
_ONE_STATE = ("none", "sgd", "adagrad", "rowwise_adagrad")
"""Optimizers whose state TorchRec moves whole: of several states it copies ``momentum1`` alone."""


def rebuilt(table: Table) -> bool:
    """Whether a reshard rebuilds a table: pooled ones, which an EmbeddingBagCollection holds."""
    return table.kind == "torchrec" and table.output == "pooled"


class Form(NamedTuple):
    """What a reshard sees of a table's option, ranks aside."""

    sharding: str
    mode: str
    ratio: Fraction
    width: int
    stash: bool

    @classmethod
    def of(cls, choice: Choice) -> Self:
        """That of an option."""
        return cls(choice.sharding, choice.mode, choice.ratio, choice.width, choice.stash)


def why_not(table: Table, optimizer: str, old: Form, new: Form) -> str | None:
    """Why a table cannot go from one form to another while training runs; None if it can.

    Both may be the same, for a move between ranks.
    """
    if not rebuilt(table):
        return "only tables of an EmbeddingBagCollection (kind: torchrec, output: pooled)"
    if new.sharding not in _TARGETS:
        return f"{new.sharding} is no target of a reshard; {' and '.join(_TARGETS)} are"
    if new.sharding != old.sharding:
        return f"the sharding type changes ({old.sharding} to {new.sharding})"
    if (new.mode, new.ratio, new.stash) != (old.mode, old.ratio, old.stash):
        return f"the kernel changes ({old.mode} to {new.mode}, or its ratio or stash)"
    if new.mode not in _MODES:
        return f"rows of {new.mode} may be newer in the cache than in the copied table"
    if optimizer not in _ONE_STATE:
        return f"a reshard copies one state of a table, {optimizer} may have more"
    if optimizer == "rowwise_adagrad" and new.width != old.width:
        return f"{optimizer} keeps a state for each row, which shards of other widths do not merge"
    return None


def twice_on(ranks: tuple[tuple[int, ...], ...]) -> bool:
    """Whether two shards sit on one rank, which a reshard cannot make."""
    flat = [rank for block in ranks for rank in block]
    return len(set(flat)) < len(flat)


def restricted(compiled: Compiled) -> Compiled:
    """Restrict a re-plan to what ``DMP.reshard`` can execute.

    Tables that cannot move are pinned to where they are; the others keep type and kernel (and, with
    a state for each row, width), and have one shard a rank. Old and new copies fit beside each
    other.

    Parameters
    ----------
    compiled : Compiled
        Its Instance counts moves from the running plan (``current``).

    Raises
    ------
    BadInput
        If tables are new, gone or displaced, or the cluster is divided into sharding groups: a
        reshard needs the same modules, tables and ranks.
    """
    instance, model = compiled.instance, compiled.model
    _refuse(compiled)
    before, forms = current_plan(instance), [Form.of(choice) for choice in compiled.options.choices]
    assert before is not None, "every table is in the running plan"
    pins, distinct = list(instance.pins), instance.block_distinct.copy()
    forbidden = set(instance.forbidden)
    for now, table in zip(instance.current, model.tables, strict=True):
        optimizer, old = model.optimizer_of(table), forms[now.option]
        # two shards on a rank could not be brought back
        if why_not(table, optimizer, old, old) is not None or twice_on(now.ranks):
            pins.append(Pin(now.table, now.option, now.ranks))
            continue
        for option in instance.options_of(now.table):
            if why_not(table, optimizer, old, forms[option]) is not None:
                forbidden.add((now.table, option))
            else:
                blocks = list(instance.blocks_of(option))
                distinct[blocks] |= instance.block_count[blocks] > 1
    held = replace(
        instance, pins=tuple(dict.fromkeys(pins)), forbidden=tuple(sorted(forbidden)),
        block_distinct=distinct,
    )  # fmt: skip
    return replace(compiled, instance=_beside(held, before, model))


def _refuse(compiled: Compiled) -> None:
    instance = compiled.instance
    known = {now.table for now in instance.current}
    new = [name for table, name in enumerate(instance.table_names) if table not in known]
    lost = [instance.table_names[now.table] for now in instance.current if now.option < 0]
    if compiled.cluster.replicas > 1:
        raise BadInput("executable: found sharding groups (two_d); a reshard knows one group")
    for what, names in (("new", new), ("without their option or ranks", lost)):
        if names:
            raise BadInput(
                f"executable: {listed(names, 3)} {'is' if len(names) == 1 else 'are'} {what}; a "
                "reshard needs the tables and ranks of the running plan: restart from a checkpoint"
            )


def _beside(instance: Instance, before: Placement, model: Model) -> Instance:
    """The instance with memory for old and new copies side by side.

    No batch is in flight during a reshard: a rank has the most HBM that any moment of a step leaves
    it, and a shard takes no more than at the moment at which it takes least.
    """
    shards = np.diff(instance.block_shards[instance.option_blocks[instance.table_options]])
    moves = np.repeat([rebuilt(table) for table in model.tables], shards)
    resources, use, held = [*instance.resources], [instance.shard_use], kept(instance, before)
    for name, here in _memories(instance).items():
        use.append(np.where(moves, instance.shard_use[:, here].min(axis=1), 0))
        room = np.maximum(0, _room(instance, here) - held[name])
        resources.append(Resource(f"reshard_{name}", resources[here[0]].scope, room))
    return replace(instance, resources=tuple(resources), shard_use=np.column_stack(use))


def _memories(instance: Instance) -> dict[str, list[int]]:
    """Resources of HBM (one for each moment) and of host memory, by ``hbm`` and ``ddr``."""
    found: dict[str, list[int]] = {}
    for index, resource in enumerate(instance.resources):
        name = resource.name.partition("@")[0]
        if (name, resource.scope) in (("hbm", Scope.RANK), ("ddr", Scope.MACHINE)):
            found.setdefault(name, []).append(index)
    return found


def _room(instance: Instance, here: Sequence[int]) -> IntArray:
    return np.asarray(np.max([instance.resources[index].capacity for index in here], axis=0))


def kept(
    instance: Instance, placement: Placement, tables: Sequence[int] | None = None
) -> dict[str, IntArray]:
    """Bytes of tables between two steps: ``hbm`` of every rank, ``ddr`` of every machine."""
    use = compute_loads(instance, placement, tables).use
    return {
        name: np.asarray(np.min([use[index] for index in here], axis=0))
        for name, here in _memories(instance).items()
    }


def in_order(
    instance: Instance, before: Placement, after: Placement, modules: Mapping[str, Sequence[int]]
) -> tuple[list[str], list[str]]:
    """Modules (tables by module) in an order in which each finds room for its second copy, and
    those that never do. The module that leaves most room goes first."""
    rooms = {name: _room(instance, here) for name, here in _memories(instance).items()}
    held, order, left = kept(instance, before), list[str](), dict(modules)
    new = {path: kept(instance, after, tables) for path, tables in modules.items()}
    old = {path: kept(instance, before, tables) for path, tables in modules.items()}

    def spare(path: str) -> int:
        return min(
            int((rooms[name] - held[name] - new[path][name]).min()) for name in rooms
        )  # fmt: skip

    while left:
        best = max(left, key=spare)
        if spare(best) < 0:
            break
        order.append(best)
        held = {name: held[name] - old[best][name] + new[best][name] for name in held}
        del left[best]
    return order, list(left)
