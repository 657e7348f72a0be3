"""Why nothing fits: the figures of a diagnosis, and how they are drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from rich.console import RenderableType

from formulations import Instance, Outcome, Settings, Status
from formulations.diagnose import diagnose
from formulations.instance import MAX_VALUE
from milp_planner.drawing.grid import Cell, Grid, headed
from milp_planner.drawing.page import Part, Section, sentence
from milp_planner.drawing.units import listed, memory_name, show_amount
from milp_planner.files import Facts
from milp_planner.inputs import Cluster, Model
from milp_planner.plans.compile import memories
from milp_planner.plans.forced import Forced
from milp_planner.pricing.entries import MOMENTS
from milp_planner.pricing.outside import at_moment, dense_part, exchange_bytes


@dataclass(frozen=True)
class TierShortage:
    """How much one resource is short, with the others unchanged."""

    resource: str
    scope: str
    smallest: int
    largest: int
    """Present capacity of its smallest and largest place."""
    needed: int | None
    """Least capacity per place at which a plan exists; None: none is known."""
    short_by: int | None
    """Capacity missing at the smallest place."""
    helps: bool
    """False if it is proved that more of this resource alone never helps."""
    proved: bool
    """Whether ``needed`` is exact or, without it, ``helps`` is proved."""
    at_least: int | None = None
    """Proved lower bound on the capacity needed."""
    memory: int | None = None
    """Bytes to write into the cluster's file, reservations included; None outside ``plan``."""


@dataclass(frozen=True)
class Remedy:
    """A change of the model."""

    kind: str
    """sharding, output_dtype, codec or dedup."""
    value: str | bool
    """The new value."""
    fits: bool | None
    """Whether a plan exists with it, proved either way; None: not settled in the time limit."""
    tables: tuple[str, ...] = ()
    """The tables whose sharding is changed."""

    def __str__(self) -> str:
        if self.kind == "sharding":
            return f"{self.value} for {' and '.join(self.tables)}"
        where = "for the tables, if lookups return it" if self.kind == "output_dtype" else ""
        return f"{self.kind}: {str(self.value).lower()} {where or 'in the workload'}"


@dataclass(frozen=True)
class ShortageInfo(Facts):
    """The whole diagnosis of an infeasible plan."""

    tiers: tuple[TierShortage, ...]
    drop: tuple[str, ...] | None
    """Tables whose removal suffices; ``drop_proved``: no fewer do."""
    drop_proved: bool
    drop_impossible: bool
    """Whether it is proved that dropping tables never suffices."""
    conflict_tables: tuple[str, ...]
    conflict_constraints: tuple[str, ...]
    """Tables and constraints that together admit no plan; empty when no conflict was isolated."""
    irreducible: bool
    """Whether the conflict disappears if any one of them is left out."""
    smallest: bool = False
    """Whether no conflict has fewer tables."""
    machines: int | None = None
    """Number of machines of the cluster's kind with which a plan exists; None: none is known."""
    machines_too_few: int | None = None
    """The largest smaller number proved to have no plan."""
    machines_now: int | None = None
    """Present number of machines; None: no other number was tried."""
    reserved: bool = False
    """Whether capacities are memory after reservations."""
    forced: Forced | None = None
    """Ranks that overflow in every plan; None: none do, or this was not examined."""
    caches: str = ""
    """Which tables share a cache and have no ratio in common; empty: none, or not examined."""
    remedies: tuple[Remedy, ...] = ()
    """Changes of the model that were tried."""


def shortage_of(detail: Mapping[str, Any]) -> ShortageInfo | None:
    """The figures of ``Outcome.detail``; None without a diagnosis."""
    diagnosis = detail.get("diagnosis")
    if not isinstance(diagnosis, Mapping):
        return None
    drop, conflict = diagnosis["drop"], diagnosis["conflict"] or {}
    machines, forced = diagnosis.get("machines", {}), diagnosis.get("forced")
    return ShortageInfo(
        tiers=tuple(
            _shortage(each, diagnosis.get("advice", {})) for each in diagnosis["capacities"]
        ),
        drop=None if drop["tables"] is None else tuple(drop["tables"]),
        drop_proved=drop["proved"],
        drop_impossible=drop["impossible"],
        conflict_tables=tuple(conflict.get("tables", ())),
        conflict_constraints=tuple(conflict.get("constraints", ())),
        irreducible=conflict.get("irreducible", False),
        smallest=conflict.get("smallest", False),
        machines=machines.get("enough"),
        machines_too_few=machines.get("too_few"),
        machines_now=machines.get("now"),
        reserved="advice" in diagnosis,
        forced=Forced.from_dict(forced) if forced else None,
        caches=diagnosis.get("caches", ""),
        remedies=tuple(
            Remedy(**{**each, "tables": tuple(each.get("tables", ()))})
            for each in diagnosis.get("remedies", ())
        ),
    )


def _shortage(entry: Mapping[str, Any], advice: Mapping[str, Any]) -> TierShortage:
    return TierShortage(
        resource=entry["resource"],
        scope=entry["scope"],
        smallest=min(entry["capacity"]),
        largest=max(entry["capacity"]),
        needed=entry["least"],
        short_by=entry["short_by"],
        helps=not entry["impossible"],
        proved=entry["proved"],
        at_least=entry["bound"],
        memory=advice.get(entry["resource"]),
    )


_MOST_NAMES = 12


def draw_shortage(info: ShortageInfo, unit: str = "ps") -> RenderableType:
    """Capacity, need and shortage of every tier; what to drop; what is in conflict."""
    return headed(_caption(info), shortage_grid(info, unit), *advice(info, unit))


def shortage_grid(info: ShortageInfo, unit: str) -> Grid:
    """One row per tier."""
    head = ("tier", "#there now", "#needed everywhere", "#short by", "answer")
    rows = [_cells(tier, unit) for tier in info.tiers]
    return Grid.of("tiers", "memory", _caption(info).capitalize(), head, rows, {"tier": 18})


def _caption(info: ShortageInfo) -> str:
    after = " after reservations" if info.reserved else ""
    return f"each tier{after}, with the others unchanged"


def advice(info: ShortageInfo, unit: str) -> Iterator[str]:
    """One line each: lower bounds, what to change or drop, what is in conflict."""
    if info.forced is not None:
        yield str(info.forced)
    if info.caches:
        yield info.caches
    yield from _remedies(info)
    for tier in info.tiers:
        if not tier.proved and tier.at_least:
            least = show_amount(tier.at_least, unit)
            yield f"no plan exists below {least} of {tier.resource} for each {tier.scope}"
    for tier in info.tiers:  # any one of these alone
        if tier.memory is not None:
            yield file_line(tier.resource, tier.memory, tier.scope)
    yield from _machines(info)
    yield from _drop(info)
    yield from _conflict(info)


def _cells(tier: TierShortage, unit: str) -> tuple[str | Cell, ...]:
    there = show_amount(tier.smallest, unit)
    if tier.largest != tier.smallest:
        there += f" to {show_amount(tier.largest, unit)}"
    name = tier.resource if tier.scope == "cluster" else f"{tier.resource} of each {tier.scope}"
    needed, short = (tier.needed, tier.short_by) if tier.helps else (None, None)
    amounts = Cell(there, tier.smallest), Cell.amount(needed, unit), Cell.amount(short, unit)
    return (name, *amounts, _certainty(tier))


def _certainty(tier: TierShortage) -> str:
    """How certain the need of a tier is."""
    if not tier.helps:
        return "proved: it alone is never enough"
    if tier.needed is None:
        return "not found in the time limit"
    return "proved least" if tier.proved else "enough; less may do"


def file_line(tier: str, memory: int, scope: str) -> str:
    """What to write into the cluster's file."""
    field, held = ("ssd.size", "stale rows") if tier == "ssd" else (tier, "reservations")
    shown = show_amount(memory, "ps")
    return f"in the cluster's file: {field}: {memory} for each {scope} ({shown}, {held} included)"


def _remedies(info: ShortageInfo) -> Iterator[str]:
    """Which changes of the model would help, and which would not."""
    fit = [str(each) for each in info.remedies if each.fits]
    short = [str(each) for each in info.remedies if each.fits is False]
    if fit:
        yield f"what would help: {', or '.join(fit)} (proved: a plan exists then)"
    if short:
        yield f"not enough alone: {', '.join(short)} (proved)"


def _machines(info: ShortageInfo) -> Iterator[str]:
    """How many machines of the same kind would be enough."""
    few, enough = info.machines_too_few, info.machines
    if few is None or info.machines_now is None:
        return
    if enough is not None:
        sure = "proved: one less is too few" if few == enough - 1 else "fewer may do"
        yield f"or {enough} machines like this one would do, for the same global batch ({sure})"
    elif few > info.machines_now:
        yield f"proved: even {few} machines like this one are too few for the same global batch"


def _drop(info: ShortageInfo) -> Iterator[str]:
    if info.drop_impossible:
        yield "proved: dropping tables does not help"
    elif info.drop is not None:
        proved = "proved: no fewer do" if info.drop_proved else "fewer may do"
        tables = "table" if len(info.drop) == 1 else "tables"
        yield f"or drop {len(info.drop)} {tables}: {listed(info.drop, _MOST_NAMES)} ({proved})"


def _conflict(info: ShortageInfo) -> Iterator[str]:
    if not info.conflict_tables:
        return
    word = "a conflict, possibly larger than necessary"
    if info.irreducible:
        word = "a smallest conflict" if info.smallest else "an irreducible conflict"
    limits = ", ".join(info.conflict_constraints) or "nothing else"
    yield f"{word}: {listed(info.conflict_tables, _MOST_NAMES)} against {limits}"


def shortage_section(info: ShortageInfo | None, unit: str) -> Section | None:
    """The page's section on why nothing fits."""
    if info is None:
        return None
    lines = tuple(sentence(line) for line in advice(info, unit))
    parts = (Part(table=shortage_grid(info, unit)),)
    return Section("why-not", "Why nothing fits", parts=parts, points=lines)


#: Most seconds for a diagnosis, whatever the solve's time limit.
MOST_SECONDS = 60.0


def diagnosis_seconds(settings: Settings) -> float:
    """Seconds for the whole diagnosis: those left of the call, if it has a limit."""
    return min(settings.time_limit or MOST_SECONDS, MOST_SECONDS, settings.timed.left())


def with_diagnosis(
    instance: Instance, outcome: Outcome, settings: Settings, share: float = 1.0
) -> Outcome:
    """Add ``detail["diagnosis"]`` to an infeasible outcome; other outcomes are unchanged.

    Least capacity of every resource, fewest tables to drop and a smallest conflict are computed
    within a ``share`` of :func:`diagnosis_seconds`. ``proof`` is the basis of the infeasibility: a
    ``certificate`` that ``verify`` re-derives, or the ``solver``'s word.
    """
    if outcome.status != Status.INFEASIBLE or settings.stop.is_set():
        return outcome
    limit = share * diagnosis_seconds(settings)
    own = replace(settings, time_limit=limit, options={}, work_limit=None)
    groups: dict[str, list[str]] = {}  # resources hbm:NAME limit one memory: they grow together
    for _, resource in memories(instance):
        groups.setdefault(memory_name(resource.name), []).append(resource.name)
    found = diagnose(instance, own, groups=groups).to_dict()
    source = outcome.bound_source
    found["proof"] = {
        "kind": "certificate" if outcome.certified_infeasible else "solver",
        "method": None if source is None else source.method,
        "exact": None if source is None else source.exact,
    }
    return outcome.with_(detail={**outcome.detail, "diagnosis": found})


def with_advice(outcome: Outcome, model: Model, cluster: Cluster) -> Outcome:
    """Add ``diagnosis["advice"]``: what to write into the cluster's file.

    A capacity is what embeddings may use; the file states whole memories, from which reservations
    are subtracted. ``advice`` maps ``hbm`` (per rank), ``ddr`` and ``ssd`` (per machine) to the
    least memory in bytes that leaves the least capacity usable.
    """
    diagnosis = outcome.detail.get("diagnosis")
    if not isinstance(diagnosis, Mapping):
        return outcome
    advice: dict[str, Any] = {}
    for entry in diagnosis["capacities"]:
        tier, least = entry["resource"], entry["least"]
        if least is not None and tier in ("hbm", "ddr", "ssd"):
            advice[tier] = memory_leaving(tier, least, max(entry["capacity"]), model, cluster)
    return outcome.with_(detail={**outcome.detail, "diagnosis": {**diagnosis, "advice": advice}})


def memory_leaving(
    tier: str, usable: int, capacity: int, model: Model, cluster: Cluster
) -> int | None:
    """Memory of a tier, as the cluster's file states it, that leaves an Instance ``usable`` bytes.

    ``capacity`` is the largest that the Instance has now.
    """
    exchange = _exchange(model, cluster, capacity) if tier == "hbm" else 0
    return memory_for(tier, usable + exchange, model, cluster)


def _exchange(model: Model, cluster: Cluster, capacity: int) -> int:
    """Bytes that the exchange takes on every rank from what embeddings may use."""
    if capacity:
        return max(cluster.usable_hbm(model)) - capacity
    held = exchange_bytes(model, cluster.num_ranks)
    return max(at_moment(held, moment) + dense_part(cluster, moment) for moment in MOMENTS)


def memory_for(tier: str, usable: int, model: Model, cluster: Cluster) -> int | None:
    """Least memory of a tier that leaves ``usable`` bytes for embeddings; None above 2^53 - 1.

    Inverts :meth:`Cluster.usable_hbm` (of a rank), :meth:`Cluster.usable_ddr` and
    :meth:`Cluster.usable_ssd` (of a machine). Where ranks reserve different amounts, or drives
    differ in amplification, the largest counts.
    """
    if tier == "ssd":
        drives = [machine.ssd for machine in cluster.machines if machine.ssd is not None]
        size = math.ceil(usable * max(drive.space_amplification for drive in drives))
        return size if size < MAX_VALUE else None
    held = cluster.reservations
    near = tier == "hbm"
    percent = cluster.withheld_percent(model) if near else max(held.ddr_percent, held.min_headroom)
    free = 1 - percent / 100
    if free == 0:
        return None
    most = max(len(machine.ranks) for machine in cluster.machines)
    fixed = Fraction(held.ddr_bytes + most * model.loader_bytes)
    if near:
        own = max(rank.reserved_bytes for rank in cluster.ranks)
        fixed = sum(cluster.fixed_hbm(model).values(), Fraction(own))
    memory = math.ceil((usable + fixed) / free)
    return memory if memory < MAX_VALUE else None
