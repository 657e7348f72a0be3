"""The two ordered lists of a search: what makes plans, and what raises the bound.

Each entry makes the parts of one kind for one side; the first part of a list begins, and the next
turn goes to the one that has had the least time (:mod:`formulations.search.turns`). Small instances
have lists of their own, where the exact model has the dual side alone until it gives up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf

from formulations.patterns.boxes import FUNCTIONS
from formulations.patterns.program import LEVELS
from formulations.search.anneal import Choice
from formulations.search.bounds import Bounds
from formulations.search.context import Context
from formulations.search.peaked import Peaked
from formulations.search.plans import Plans
from formulations.search.prover import Prover
from formulations.search.turns import Part
from formulations.search.whole import Whole


@dataclass(frozen=True)
class Shared:
    """What the parts of both sides work with."""

    context: Context
    bounds: Bounds
    whole: Whole
    prover: Prover


def first_plan(shared: Shared, plans: Plans) -> list[Part]:
    """Any plan, where memory is so tight that passes near the bound meet none."""
    return [_maker(shared, "first plan", plans.first)]


def annealing(shared: Shared, plans: Plans) -> list[Part]:
    """Passes from a choice of options and from the best plan, from each first temperature; where a
    bound has just chosen options, a cold pass from them goes before others for some of the time."""
    context, found = shared.context, list[Part]()
    for warm, heat in plans.ways():
        part = _maker(shared, f"annealing {warm, heat}", partial(plans.anneal, warm, heat))
        if not warm and heat == context.parameters.heats[-1]:
            part.urgent = partial(_news, context, plans, part)
        found.append(part)
    return found


def _news(context: Context, plans: Plans, part: Part) -> bool:
    chosen, now = context.parameters, context.clock.now()
    return plans.news and part.spent <= max(
        chosen.urgent_share * plans.spent, chosen.news_share * now
    )


def replicas(shared: Shared, plans: Plans) -> list[Part]:
    """Replica exchange, with as much time as all ways to anneal together."""
    part = _maker(shared, "replicas", plans.temper)
    part.shares = len(plans.ways())
    return [part]


def packing(shared: Shared, plans: Plans) -> list[Part]:
    """Choices of options packed into ranks; once, before anything else."""

    def pack(amount: float) -> bool:
        plans.pack()
        return False

    part = _maker(shared, "packing", pack)
    part.urgent = lambda: True
    return [part]


def pooled(shared: Shared, plans: Plans) -> list[Part]:
    """The program over pooled places: a bound, and a choice of options."""
    return [_program(shared, "pooled", shared.bounds.pooled)]


def machines(shared: Shared, plans: Plans) -> list[Part]:
    """The program with separate machines: a choice below a limit, or a proof that there is none."""
    if len(shared.context.instance.machines) == 1:
        return []
    part = _program(shared, "machines", shared.bounds.machines)
    part.urgent = lambda: shared.bounds.answers(part.spent)
    return [part]


def start_with_room(shared: Shared, plans: Plans) -> list[Part]:
    """Options for plans to start from, from pooled programs with less and less room for packing."""
    return [_program(shared, "start", shared.bounds.start_with_room)]


def functions(shared: Shared, plans: Plans) -> list[Part]:
    """Boxes of peaks in which dual-feasible functions say what ranks can hold; where many tables
    are equal, their choices are placed at once."""
    return [_boxes(shared, "functions", FUNCTIONS, plans.settle)]


def peaks(shared: Shared, plans: Plans) -> list[Part]:
    """Boxes of peaks in which patterns say what one rank can hold."""
    return [_boxes(shared, "peaks", LEVELS[0], shared.bounds.choose)]


def _boxes(shared: Shared, name: str, level: int, choose: Callable[[Choice], bool | None]) -> Part:
    boxes = Peaked(shared.context, level, choose)
    part = _raiser(shared, name, boxes.run)
    part.waits, part.urgent = boxes.waits, lambda: boxes.urgent(part.spent)
    return part


def prover(shared: Shared, plans: Plans) -> list[Part]:
    """A certificate for the best plan."""
    part = _raiser(shared, "prover", shared.prover.certified)
    part.waits = shared.prover.nothing_to_certify
    part.urgent = lambda: shared.prover.may_close(part.spent)
    return [part]


def whole(shared: Shared, plans: Plans) -> list[Part]:
    """The exact model over the options left, beside other parts."""
    part = _raiser(shared, "whole", shared.whole.run)
    part.waits, part.urgent = shared.whole.large, shared.whole.news
    return [part]


def whole_alone(shared: Shared, plans: Plans) -> list[Part]:
    """The exact model with the dual side to itself; with one worker its turns grow."""
    part = _raiser(shared, "whole alone", shared.whole.run)
    part.anew = True
    if shared.context.beside:
        part.amount = part.first = inf
    return [part]


Entry = Callable[[Shared, Plans], list[Part]]
MAKERS: tuple[Entry, ...] = (first_plan, annealing, replicas)


@dataclass(frozen=True)
class Lists:
    """The lists of one kind of instance.

    Attributes
    ----------
    primal : tuple of functions
        Makes plans, with the first worker's makers.
    alone : tuple of functions
        Has the dual side until the exact model gives up.
    dual : tuple of functions
        Raises the bound after that, and makes plans with the second worker's makers.
    """

    primal: tuple[Entry, ...]
    alone: tuple[Entry, ...]
    dual: tuple[Entry, ...]


LARGE = Lists(
    primal=(packing, *MAKERS),
    alone=(),
    dual=(pooled, functions, peaks, start_with_room, machines, *MAKERS, whole),
)
SMALL = Lists(
    primal=(packing, pooled, functions, peaks, prover, *MAKERS, machines),
    alone=(whole_alone,),
    dual=(*MAKERS, whole),
)


def parts(entries: Sequence[Entry], shared: Shared, plans: Plans) -> list[Part]:
    """The parts of a list, in its order."""
    return [part for entry in entries for part in entry(shared, plans)]


def _maker(shared: Shared, name: str, run: Callable[[float], bool]) -> Part:
    """A part whose progress is a better plan; it waits while the loops are compiled."""
    context = shared.context

    def better() -> float:
        return -inf if context.objective is None else -context.objective

    return Part(name, run, better, context.parameters.first_turn, waits=context.loops.compiling)


def _raiser(shared: Shared, name: str, run: Callable[[float], bool]) -> Part:
    """A part whose progress is a higher bound."""
    context = shared.context

    def better() -> float:
        return -inf if context.bound is None else context.bound

    return Part(name, run, better, context.parameters.first_turn)


def _program(shared: Shared, name: str, run: Callable[[float], bool]) -> Part:
    """Such a part with a longer first turn: mostly it is solved sooner."""
    part = _raiser(shared, name, run)
    part.amount = part.first = shared.context.parameters.program_turn
    return part
