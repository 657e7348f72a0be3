"""What will run of an exported plan: price and memory beside the plan's, and what differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from formulations import Outcome, Settings, Status, StoppedBy, check
from milp_planner.drawing.units import show_bytes, show_cost
from milp_planner.errors import BadInput, FallsShort
from milp_planner.files import Facts
from milp_planner.inputs import Model
from milp_planner.inputs.constraints import Constraints
from milp_planner.integrations import exports, replay
from milp_planner.integrations.replay import Pins, Trainer
from milp_planner.integrations.replay.caches import padding
from milp_planner.integrations.replay.greedy import EVERYWHERE
from milp_planner.integrations.replay.search import Search, widened
from milp_planner.plans.compile import compile_instance
from milp_planner.plans.ledger import ledger_of
from milp_planner.plans.placement import PlacedTable, Plan, decode
from milp_planner.pricing import price
from milp_planner.start.literal import matched, place
from milp_planner.start.rows import pins_of, read_start
from milp_planner.version import __version__

_Seats = tuple[tuple[str, int], ...]
"""Tables with the number of their shards on one rank, in the order of their names."""
_FIELDS = (
    ("type", "sharding_type"), ("mode", "mode"), ("ratio", "cache_ratio"), ("width", "column_width")
)  # fmt: skip
"""Reasons why a table differs, and the fields that say so."""


@dataclass(frozen=True)
class Difference:
    """One table that will not run as planned."""

    table: str
    reason: str
    """The first of type, mode, ratio, width, rank that differs."""
    planned: str
    runs: str


def differences(planned: Plan, ran: Plan) -> tuple[Difference, ...]:
    """The tables that differ, in the model's order; none if the plans are the same."""
    found = []
    here, there = _neighbours(planned), _neighbours(ran)
    for ours, theirs in zip(planned.tables, ran.tables, strict=True):
        unlike = (name for name, field in _FIELDS if getattr(ours, field) != getattr(theirs, field))
        reason = next(unlike, None)
        if reason is None and here.get(ours.name) != there.get(ours.name):
            reason = "rank"
        if reason is not None:
            words = _words(ours, reason), _words(theirs, reason)
            found.append(Difference(ours.name, reason, *words))
    return tuple(found)


def _words(placed: PlacedTable, reason: str) -> str:
    if reason == "width":
        shards = f"{placed.column_shards} shards of " if placed.column_shards > 1 else ""
        return f"{shards}{placed.column_width} columns"
    ranks = [rank for block in placed.ranks for rank in block]
    return {
        "type": placed.sharding_type, "mode": placed.mode, "ratio": str(placed.cache_ratio),
        "rank": "ranks " + ",".join(map(str, ranks)),
    }[reason]  # fmt: skip


def _neighbours(plan: Plan) -> dict[str, Counter[tuple[object, _Seats]]]:
    """For every table that had a choice of ranks: what its machines and its ranks hold.

    Two plans agree in it for all tables exactly if exchanging like ranks and machines turns one
    into the other.
    """
    seats: list[Counter[str]] = [Counter() for _ in range(plan.cluster.num_ranks)]
    for placed in plan.tables:
        if placed.sharding_type not in EVERYWHERE:
            for rank in (rank for block in placed.ranks for rank in block):
                seats[rank][placed.name] += 1
    held: list[_Seats] = [tuple(sorted(each.items())) for each in seats]
    found: dict[str, Counter[tuple[object, _Seats]]] = {}
    for machine, ranks in zip(plan.cluster.machines, plan.cluster.machine_ranks, strict=True):
        pairs = [(str(rank), held[n]) for rank, n in zip(machine.ranks, ranks, strict=True)]
        whole = (machine.ddr_bytes, tuple(sorted(pairs)))
        for kind, seat in pairs:
            for name, _ in seat:
                found.setdefault(name, Counter())[((whole, kind), seat)] += 1
    return found


SECONDS = 5.0
"""Time for looking."""


def remedy(plan: Plan, name: str, trainer: Trainer) -> str:
    """Tables and types with which the trainer runs: one other than the plan's, or a few."""
    options = price(widened(plan.model, trainer), plan.cluster, plan.profile)
    instance = compile_instance(options, plan.instance.objective)
    otherwise = f"plan --for {name} looks for a plan that runs"
    try:
        search = Search(trainer, options, instance, Settings(time_limit=SECONDS))
    except FallsShort as error:
        return str(error)
    wanted = [options.index(t, placed.option) for t, placed in enumerate(plan.tables)]
    start = search.nearest(wanted)
    for settings in (start, *search.neighbours(start)):
        search.score(settings)
    if search.best is None:
        search.descend(start)
    if search.best is None:
        return otherwise
    changed = [
        f"{placed.name}={options.choices[now].sharding}"
        for placed, then, now in zip(plan.tables, wanted, search.best.settings, strict=True)
        if then != now
    ]
    cost = show_cost(search.best.cost, instance.time_unit)
    return f"{', '.join(changed)} would run, at {cost}; {otherwise}"


MOST_LISTED = 6
"""Most tables that a sentence lists."""


@dataclass(frozen=True)
class Fullest:
    """The rank with the least free HBM."""

    rank: int
    used: int
    whole: int
    """Bytes."""


@dataclass(frozen=True)
class Judgement(Facts):
    """What a trainer runs of a plan."""

    trainer: str
    planned: int
    runs: int
    """The objective of the plan and of what runs."""
    time_unit: str
    planned_fullest: Fullest | None
    fullest: Fullest | None
    """None where the plan's version counts other bytes."""
    differ: tuple[Difference, ...]
    settings: dict[str, str]
    """Settings of the trainer that lead to it."""
    left: tuple[str, ...]
    kept: str = ""
    """Within which limits of what is not known exactly it runs so."""

    @property
    def exact(self) -> bool:
        """Whether the plan runs as it is, up to interchangeable ranks, and nothing is left open."""
        return not self.differ and not self.left

    def sentences(self) -> Iterator[str]:
        """What to tell a user."""
        yield from self._what_runs()
        if self.kept:
            yield self.kept

    def _what_runs(self) -> Iterator[str]:
        yield from self.left
        if not self.differ:
            but = "otherwise " if self.left else ""
            yield f"{but}what runs is this plan, up to interchangeable ranks"
            return
        runs, planned = (show_cost(v, self.time_unit) for v in (self.runs, self.planned))
        rank = "" if self.fullest is None else f", {_memory(self.fullest)}"
        ours = "" if self.planned_fullest is None else f", {_memory(self.planned_fullest)}"
        yield f"the trainer's planner will run this as {runs}{rank}; the plan says {planned}{ours}"
        listed = [
            f"{d.table} ({d.reason}: {d.runs}, not {d.planned})" for d in self.differ[:MOST_LISTED]
        ]
        more = len(self.differ) - MOST_LISTED
        listed += [f"and {more} more"] if more > 0 else []
        yield f"{len(self.differ)} tables differ: {'; '.join(listed)}"


def _memory(fullest: Fullest) -> str:
    used = show_bytes(fullest.used)
    return f"rank {fullest.rank} the fullest with {used} of {show_bytes(fullest.whole)}"


def judge(plan: Plan, to: str, settings: Mapping[str, str] | None = None) -> tuple[Judgement, Plan]:
    """What the trainer that reads a format runs of a plan, and that as a plan.

    ``settings`` are of the trainer and stay as they are; of several others that lead to different
    plans, the first of least cost that fits.

    Raises
    ------
    BadInput
        If the format cannot hold the plan.
    FallsShort
        If the trainer would stop, or run out of memory.
    """
    trainer = replay.get(to)
    try:
        return _judged(plan, to, trainer, settings or {})
    except FallsShort as error:
        if not trainer.decides:
            raise
        raise FallsShort(f"{error}; {remedy(plan, to, trainer)}") from None


def _judged(
    plan: Plan, to: str, trainer: Trainer, settings: Mapping[str, str]
) -> tuple[Judgement, Plan]:
    planned = pins_of(plan)
    asked = exports.read(exports.write(plan, to, settings), to, plan.model)
    if plan.version != __version__ and trainer.decides:
        plan = placed(plan, planned)  # at this version's prices, like what runs
    ways = trainer.runs(asked, planned, plan.model, plan.cluster)
    found = [(ran, plan if ran.pins == planned else placed(plan, ran.pins)) for ran in ways]
    fitting = [(ran, each) for ran, each in found if each.verdict and each.verdict.feasible]
    if not fitting:
        raise FallsShort(_overflow(found[0][1]))
    ran, as_plan = min(fitting, key=lambda each: cost_of(each[1]))
    padded = _padded(as_plan)
    ran = trainer.steady(ran, asked, plan.model, plan.cluster)
    judgement = Judgement(
        trainer=to,
        planned=cost_of(plan),
        runs=cost_of(as_plan),
        time_unit=plan.instance.time_unit,
        planned_fullest=fullest_of(plan),
        fullest=fullest_of(as_plan),
        differ=differences(plan, as_plan),
        settings={**settings, **ran.settings},
        left=ran.left,
        kept="; ".join(filter(None, (ran.kept, padded))),
    )
    return judgement, as_plan


def _padded(ran: Plan) -> str:
    """A sentence about caches whose rows are as wide as their widest table; FallsShort if the
    memory that this takes is not left."""
    more, ledger = padding(ran), ledger_of(ran)
    if not more or ledger is None:
        return ""
    room = {place.place: place.room for place in ledger.hbm}
    rank = min(more, key=lambda each: room[each] - more[each])
    text = f"rows of a shared cache are as wide as its widest table: {show_bytes(more[rank])} more"
    if room[rank] < more[rank]:
        raise FallsShort(f"{text} on rank {rank}, where {show_bytes(room[rank])} are left")
    return f"{text} than planned on rank {rank}, which has room for it"


def cost_of(plan: Plan) -> int:
    """The objective of a plan's placement."""
    verdict = plan.verdict
    assert verdict is not None
    return verdict.objectives[plan.instance.objective.value]


def fullest_of(plan: Plan) -> Fullest | None:
    """The rank with the least free HBM."""
    ledger = ledger_of(plan)
    if ledger is None or not ledger.hbm:
        return None
    place = min(ledger.hbm, key=lambda each: each.room)
    return Fullest(place.place, place.used, place.whole)


def placed(plan: Plan, pins: Pins) -> Plan:
    """Other placements of a plan's tables as a plan of the same inputs, whether or not it fits."""
    model = narrowed(plan.model, pins)
    options = price(model, plan.cluster, plan.profile)
    instance = compile_instance(options, plan.instance.objective)
    rows, wrong = matched(read_start(pins), model)
    try:
        placement = place(options, instance, rows, wrong=wrong)
    except BadInput as error:
        raise FallsShort(f"what the trainer's planner makes of it has no price: {error}") from None
    verdict = check(instance, placement)
    outcome = Outcome(
        Status.UNKNOWN, StoppedBy.EXHAUSTED, "replay", placement=placement,
        objective=verdict.objectives.get(instance.objective.value),
        objectives=verdict.objectives,
    )  # fmt: skip
    return decode(options, instance, outcome)


def narrowed(model: Model, pins: Pins) -> Model:
    """The model with the options of these pins only, whatever its own constraints say."""
    fields = {
        "modes": "mode", "sharding_types": "sharding_type", "cache_ratios": "cache_ratio",
        "column_widths": "column_width",
    }  # fmt: skip
    tables = []
    for table in model.tables:
        pinned = {many: getattr(pins[table.name], one) for many, one in fields.items()}
        only: dict[str, Any] = {k: (value,) for k, value in pinned.items() if value is not None}
        limits = Constraints(**only, stash=table.constraints.stash)
        tables.append(table.model_copy(update={"constraints": limits}))
    return model.model_copy(update={"tables": tuple(tables)})


def _overflow(ran: Plan) -> str:
    """Which memory what runs would overflow."""
    fullest, verdict = fullest_of(ran), ran.verdict
    where = "" if verdict is None or not verdict.violations else str(verdict.violations[0])
    if fullest is not None and fullest.used > fullest.whole:
        where = _memory(fullest)
    return f"what the trainer's planner makes of this plan does not fit: {where}"
