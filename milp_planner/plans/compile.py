"""Read inputs, price their options, and compile these to the Instance that formulations solve."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from formulations import Placement
from formulations.instance import Current, Instance, IntArray, Objective, Resource, Scope, Where
from formulations.result.check import check
from formulations.runtime.collector import uncollected
from milp_planner.drawing.units import memory_name
from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.files import load_cluster, load_model
from milp_planner.inputs.problems import choice as nearest
from milp_planner.inputs.sharding_group import group_of
from milp_planner.pricing import price
from milp_planner.pricing.entries import (
    SHARD_NAMES,
    alive,
    alive_outside_exchange,
    binding,
    moments_of,
    stored,
)
from milp_planner.pricing.options import Options
from milp_planner.pricing.outside import capacities
from milp_planner.pricing.overlap import Overlapped, overlapped
from milp_planner.pricing.shared_caches import Caches, kernel_of

_WHERE = {
    "data_parallel": Where.EVERY_RANK,
    "row_wise": Where.EVERY_RANK,
    "table_wise": Where.ANY_RANK,
    "column_wise": Where.ANY_RANK,
    "table_row_wise": Where.ONE_MACHINE,
    "grid_shard": Where.ONE_MACHINE,
    "table_column_wise": Where.ANY_RANK_OF_ONE_MACHINE,
}

RULE = "one ratio: "
"""How names of resources begin that keep two tables from meeting at unlike ratios of a cache."""


def compile_instance(
    options: Options,
    objective: Objective | str = Objective.STEP_TIME,
) -> Instance:
    """The Instance of priced options.

    Resources are ``hbm`` (of a rank) and ``ddr`` (of a machine), with the capacities that the
    cluster leaves to embeddings. For machines with SSD there are ``ssd`` (of a machine; live bytes)
    and, with the workload's ``ssd_step_ms``, ``ssd_step`` (of a machine; bytes read and written in
    a step); with its ``stash_window_ms``, ``stash`` (of a rank; bytes copied each way in a step).
    If any of several moments of a step may be the fullest, each has an HBM resource
    ``hbm@MOMENT``, which counts what is alive then (:mod:`milp_planner.pricing.entries`).

    With ``buffers: largest_collective`` each collective has one too, such as
    ``hbm@forward_send:NAME``. It counts all tables, but the buffers of this collective only.
    Together these mean exactly that the tables and the largest collective's buffers fit.

    Costs are picoseconds of each phase of the options or, under ``pipelined_step``, of the phases
    of :mod:`milp_planner.pricing.overlap`.

    If the percentage reserved covers buffers, ``hbm@rows`` limits rows and state beside it, and the
    moments count without it.

    The Instance is not validated again: its arrays satisfy the format's rules by construction,
    which tests assert with :func:`formulations.instance.validate.validate`.
    """
    resources, use = _resources(options)
    steps = Overlapped(options.phases, options.entries.cost, ())
    if objective == Objective.PIPELINED_STEP:
        steps = overlapped(options)
    return Instance(
        name=f"{options.model.name}@{options.cluster.name}",
        source=f"milp-planner, profile {options.profile.name}",
        machines=options.cluster.machine_ranks,
        phases=steps.phases,
        hidden=steps.hidden,
        objective=Objective(objective),
        resources=resources,
        table_names=tuple(t.name for t in options.model.tables),
        option_names=tuple(options.names),
        fusion_groups=options.groups,
        table_options=options.first,
        option_group=options.group,
        option_level=options.level,
        **_blocks(options),
        shard_repeat=options.entries.repeat,
        shard_use=use,
        shard_cost=steps.cost,
        shard_move=options.entries.move,
    )


def regrouped(ranks: tuple[tuple[int, ...], ...], pinned: bool) -> tuple[tuple[int, ...], ...]:
    """Ranks of an option's blocks: one block for each shard if ranks are pinned, else one block."""
    flat = tuple(rank for block in ranks for rank in block)
    return tuple((rank,) for rank in flat) if pinned else (flat,)


def _blocks(options: Options) -> dict[str, Any]:
    """Arrays of an Instance: one block for each option, or for each shard if ranks are pinned."""
    choices, first = options.choices, options.entries.first
    distinct, of = options.distinct
    pinned = np.array([c.pinned is not None for c in distinct], dtype=np.bool_)[of]
    times = np.where(pinned, np.diff(first), 1)
    option_blocks = np.concatenate(([0], np.cumsum(times))).astype(np.int64)
    option = np.repeat(np.arange(len(choices)), times)
    inside = np.arange(len(option)) - option_blocks[option]
    kinds = [_WHERE[c.sharding] if c.members is None else Where.LIST for c in distinct]
    where = np.array(kinds, dtype=np.int8)[of]
    count = np.array([c.columns for c in distinct], dtype=np.int64)[of]
    sets: dict[tuple[int, ...], int] = {}
    places = np.full(len(distinct), -1, dtype=np.int64)
    for index, choice in enumerate(distinct):
        place = choice.members or (choice.machines if choice.machines is not None else choice.ranks)
        if place is not None and choice.pinned is None:
            places[index] = sets.setdefault(place, len(sets))
    block_places = places[of][option]
    for block in np.flatnonzero(pinned[option]):
        ranks = choices[int(option[block])].pinned
        assert ranks is not None
        block_places[block] = sets.setdefault((ranks[int(inside[block])],), len(sets))
    listed = pinned[option]
    settled = np.isin(where, (Where.EVERY_RANK, Where.LIST))
    block_where = np.where(listed, np.int8(Where.LIST), where[option]).astype(np.int8)
    block_count = np.where(listed | settled[option], 1, count[option])
    one = [c.mode == "SSD" for c in distinct]  # a rank has one store per table
    apart = np.array(one, dtype=np.bool_)[of][option]
    return {
        "option_blocks": option_blocks,
        "block_where": block_where,
        "block_count": block_count,
        "block_distinct": (block_where == Where.ONE_MACHINE) | (apart & (block_count > 1)),
        "block_places": block_places,
        "place_sets": tuple(sets),
        "block_shards": np.append(first[option] + np.where(listed, inside, 0), first[-1]),
    }


def _resources(options: Options) -> tuple[tuple[Resource, ...], IntArray]:
    """Resources with their capacities, and the use of each by every shard entry."""
    entries, cluster = options.entries, options.cluster
    ddr = Resource(
        "ddr", Scope.MACHINE, np.array(cluster.usable_ddr(options.model), dtype=np.int64)
    )
    room, use = capacities(options.model, cluster), _hbm_use(options)
    names = binding(use, {name: room[_moment(name)] for name in use})
    found = [
        Resource(_shortest(name, [*names]), Scope.RANK, np.array(each, dtype=np.int64))
        for name, each in names.items()
    ]
    further = [*_rows(options), *_drives(options), *_stash(options)]
    columns = [*(use[name] for name in names), entries.ddr, *(used for _, used in further)]
    return (*found, ddr, *(each for each, _ in further)), np.stack(columns, axis=1)


def _rows(options: Options) -> list[tuple[Resource, IntArray]]:
    """HBM for rows and state beside a percentage that covers buffers."""
    room = options.cluster.room_for_rows(options.model)
    if room is None:
        return []
    resource = Resource("hbm@rows", Scope.RANK, np.array(room, dtype=np.int64))
    return [(resource, options.entries.ledger @ stored())]


def _stash(options: Options) -> list[tuple[Resource, IntArray]]:
    """Bytes that a rank can copy to host memory, and back, while the dense part hides it."""
    window = options.model.workload.stash_window_ms
    if window is None:
        return []
    most = int(Fraction(window) * Fraction(options.profile.host_link) / 1000)
    capacity = np.full(options.cluster.num_ranks, most, dtype=np.int64)
    whole = np.array([c.mode == "HBM_ONLY" for c in options.choices], dtype=np.int64)
    copied = np.repeat(whole, np.diff(options.entries.first))  # caches are fetched, not copied
    stashed = options.entries.ledger[:, SHARD_NAMES.index("stashed")] * copied
    return [(Resource("stash", Scope.RANK, capacity), stashed)]


def _drives(options: Options) -> list[tuple[Resource, IntArray]]:
    """SSD of each machine and, if the time for it in a step is limited, its traffic."""
    entries, cluster, busy = options.entries, options.cluster, options.model.workload.ssd_step_ms
    if not cluster.has_ssd:
        return []

    def resource(name: str, capacity: Sequence[int]) -> Resource:
        return Resource(name, Scope.MACHINE, np.array(capacity, dtype=np.int64))

    found = [(resource("ssd", cluster.usable_ssd()), entries.ssd)]
    if busy is not None:
        rates = [machine.ssd.bandwidth if machine.ssd else 0 for machine in cluster.machines]
        most = [int(Fraction(busy) * rate / 1000) for rate in rates]
        found.append((resource("ssd_step", most), entries.ssd_step))
    return found


def _hbm_use(options: Options) -> dict[str, IntArray]:
    """HBM that every shard entry uses at each moment, or at each moment of each collective."""
    ledger = options.entries.ledger
    moments = moments_of(options.model.grows)
    use = {moment: ledger @ alive(moment) for moment in moments}
    used = np.unique(options.collective[options.collective >= 0])
    if options.model.workload.buffers == "additive" or len(used) < 2:
        return use
    option = np.repeat(np.arange(len(options)), np.diff(options.entries.first))
    collective = options.collective[option]
    always = {moment: ledger @ alive_outside_exchange(moment) for moment in moments}
    return {
        f"{moment}:{options.collectives[c]}": np.where(
            np.isin(collective, (c, -1)), held, always[moment]
        )
        for moment, held in use.items()
        for c in used
    }


def _moment(name: str) -> str:
    return name.partition(":")[0]


def _shortest(name: str, names: Sequence[str]) -> str:
    """``hbm``, ``hbm@MOMENT`` or ``hbm@MOMENT:COLLECTIVE``; ``hbm`` if there is a single moment."""
    moment, colon, collective = name.partition(":")
    several = len({_moment(each) for each in names}) > 1
    return "hbm" + (f"@{moment}" if several else "") + colon + collective


def as_current(placement: Placement) -> tuple[Current, ...]:
    """A placement in the form from which an Instance counts moves."""
    return tuple(
        Current(t, int(o), tuple(tuple(block) for block in placement.to_lists(t)))
        for t, o in enumerate(placement.options)
    )


@dataclass(frozen=True, eq=False)
class Compiled:
    """Inputs, their priced options, and the Instance compiled from these."""

    model: Model
    cluster: Cluster
    options: Options
    instance: Instance

    @cached_property
    def caches(self) -> Caches:
        """Those of its options."""
        model, owners = self.model, self.instance.table_of
        tables = [model.tables[int(owner)] for owner in owners]
        return Caches.named(
            [
                (kernel_of(table, c.sharding, c.width, model.workload), c.ratio)
                if c.runtime == "torchrec"
                and c.mode == "CACHING"
                and model.workload.fusion != "free"
                else None
                for table, c in zip(tables, self.options.choices, strict=True)
            ]
        )


def compile_for(model: ModelSource, cluster: ClusterSource, objective: str) -> Compiled:
    """Read, validate, price and compile; BadInput also for an unknown objective."""
    names = [o.value for o in Objective]
    if str(objective) not in names:
        raise BadInput(f"objective {str(objective)!r}: {nearest(str(objective), names)}")
    read = to_model(model), to_cluster(cluster)
    with uncollected():
        options = price(*read)
        return Compiled(*read, options, compile_instance(options, Objective(objective)))


def under_all(options: Options) -> Callable[[Placement], dict[str, int]]:
    """A function that gives a well-formed placement's value under every objective.

    A pipelined step has phases of its own.
    """
    kinds = Objective.STEP_TIME, Objective.PIPELINED_STEP
    instances = [compile_instance(options, kind) for kind in kinds]

    def values(placement: Placement) -> dict[str, int]:
        return {
            name: value
            for instance in instances
            for name, value in check(instance, placement).objectives.items()
        }

    return values


def memories(instance: Instance) -> list[tuple[int, Resource]]:
    """Resources with their indices, without those that only say what runs together."""
    return [(i, r) for i, r in enumerate(instance.resources) if not r.name.startswith(RULE)]


def per_memory(used: Mapping[str, int]) -> dict[str, int]:
    """Use of each memory: where several resources limit one, the largest of them."""
    found: dict[str, int] = {}
    for resource, amount in used.items():
        name = memory_name(resource)
        found[name] = max(amount, found.get(name, 0))
    return found


def without_rules(instance: Instance) -> Instance:
    """The instance without what only says what runs together."""
    kept = dict(memories(instance))
    use = instance.shard_use[:, [*kept]]
    return replace(instance, resources=tuple(kept.values()), shard_use=use)


Input = TypeVar("Input", Model, Cluster)
ModelSource = Model | str | Path
ClusterSource = Cluster | str | Path


def to_model(source: ModelSource) -> Model:
    """The model itself, or the one in a YAML file, or the one of that name in a catalog."""
    return source if isinstance(source, Model) else _read(source, "model", load_model)


def to_cluster(source: ClusterSource) -> Cluster:
    """The cluster, as in :func:`to_model`.

    If it names its division into sharding groups, one of the groups.
    """
    found = source if isinstance(source, Cluster) else _read(source, "cluster", load_cluster)
    return found if found.two_d is None or not found.two_d.named else group_of(found)


def _read(source: object, what: str, load: Callable[[Path], Input]) -> Input:
    if not isinstance(source, (str, Path)):
        found = type(source).__name__
        raise BadInput(f"a {what} must be a path or a {what.capitalize()}, found {found}")
    catalog = _catalog_of(Path(source))
    if catalog is None:
        return load(Path(source))
    found_there: Input = getattr(catalog, f"find_{what}")(str(source))
    return found_there


def _catalog_of(path: Path) -> Any:
    """The catalog that may have a bare name; None for a path or an existing file."""
    if path.suffix or len(path.parts) > 1 or path.is_file():
        return None
    return next((found.load() for found in entry_points(group="milp_planner.catalogs")), None)
