"""What can be taken out of a search, one at a time: mechanisms, and settings off, halved, doubled.

A mechanism with a setting is switched by it; for the others the switch is here, and not in the
product: a function of the search is replaced for the length of one solve.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from formulations import presolve
from formulations.instance.facts import own_cost
from formulations.model import build
from formulations.proof import prove, tree
from formulations.proof.packing import Packing
from formulations.proof.prove import _Search, symmetric_lp
from formulations.search import bounds, conductor, whole
from formulations.search.lists import parts
from formulations.search.parameters import DEFAULT, KINDS, Parameters
from formulations.search.plans import Plans
from formulations.search.question import ask
from formulations.search.state import State
from formulations.search.turns import Part

Switch = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True)
class Variant:
    """A search that lacks something.

    Attributes
    ----------
    name : str
        What it lacks, or the setting and how it was changed.
    options : mapping
        Settings of ``auto`` that make it so.
    switch : callable
        A context in which it is so.
    """

    name: str
    options: Mapping[str, object] = field(default_factory=dict)
    switch: Switch = nullcontext


def _made(change: Callable[[Part], None]) -> Switch:
    """Every part of the conductor is changed when it is made."""

    def make(*given: Any) -> list[Part]:
        found = parts(*given)
        for part in found:
            change(part)
        return found

    return lambda: patch.object(conductor, "parts", make)


def _never(*names: str) -> Switch:
    """Parts with such names get no turn."""

    def end(part: Part) -> None:
        part.alive = not part.name.startswith(names)

    return _made(end)


def _without_urgency(part: Part) -> None:
    part.urgent = lambda: False


def _mix(change: Callable[[list[int]], object]) -> Switch:
    """Another mix of moves."""
    plain = Plans._mix

    def mixed(plans: Plans) -> tuple[int, ...]:
        mix = list(plain(plans))
        change(mix)
        return tuple(mix)

    return lambda: patch.object(Plans, "_mix", mixed)


def _set(place: int, value: Callable[[list[int]], int]) -> Switch:
    return _mix(lambda mix: mix.__setitem__(place, value(mix)))


def _instead(owner: object, name: str, other: object) -> Switch:
    return lambda: patch.object(owner, name, other)


def _nothing(*_: object, **__: object) -> None:
    return None


def _own_cost_alone(state: State, value: int) -> NDArray[np.bool_]:
    return state.known.keep & (own_cost(state._instance) < value)


def _packed(plans: Plans) -> None:
    plans._packed = True


@contextmanager
def _replicas_alone() -> Iterator[None]:
    """No passes of annealing; replicas pack choices first, as passes did."""
    plain = Plans.temper

    def temper(plans: Plans, amount: float) -> bool:
        plans._ready()
        if not plans._packed:
            plans.pack()
        return plain(plans, amount)

    with _never("annealing")(), patch.object(Plans, "temper", temper):
        yield


def _unhinted(*given: Any, take: Any = None) -> Any:
    """A question without its fifth argument, the plan to start from; ``take`` is the sixth."""
    return ask(*given[:4], take=given[5] if len(given) > 5 else take)


_COLD = 1e-9  # in place of no heat at all, which nothing can be divided by

#: The search as it is: what the others are compared with.
BASE = Variant("as it is")

PARTS = (
    Variant("placing of choices", switch=_instead(bounds, "place", _nothing)),
    Variant("CP-SAT's own neighbourhoods", switch=_never("improving")),
    Variant("annealing", switch=_replicas_alone),
    Variant("annealing from what was reached", switch=_never("annealing (True")),
    Variant("packing of choices", switch=_instead(Plans, "pack", _packed)),
    Variant("replicas that begin anew", {"patience": 10**9}),
    Variant("another ladder for the second side", {"other_ladder": list(DEFAULT.ladder)}),
    Variant("ruin", switch=_set(6, lambda _: 100)),
    Variant("packing ranks anew", switch=_set(5, lambda _: 0)),
    Variant("packing anew after another option", switch=_set(6, lambda mix: mix[5])),
    Variant("swaps", switch=_set(1, lambda mix: mix[4])),
    Variant("greedy's plan", switch=_instead(conductor, "starting_plan", _nothing)),
    Variant("annealing and packing of choices", switch=_never("annealing")),
    Variant("replicas", switch=_never("replicas")),
    Variant("first plan", switch=_never("first plan")),
    Variant("pooled program", switch=_never("pooled")),
    Variant("machines apart", switch=_never("machines")),
    Variant("starts with room", switch=_never("start")),
    Variant("whole model", switch=_never("whole")),
    Variant("choices told by programs", switch=_instead(Plans, "choose", _nothing)),
    Variant("urgency", switch=_made(_without_urgency)),
    Variant("options ruled out by price", switch=_instead(State, "left_below", _own_cost_alone)),
    Variant("dominance", switch=_instead(presolve, "_dominate", _nothing)),
    Variant("largest-shard rows", switch=_instead(build, "add_largest", _nothing)),
    Variant("order of like ranks", switch=_instead(build, "order_ranks", _nothing)),
    Variant("targets of the linear program",
            switch=_instead(conductor, "symmetric_lp", partial(symmetric_lp, targets=False))),
    Variant("moves on several tables", switch=_set(4, lambda _: 100)),
    Variant("several places looked at", switch=_set(2, lambda _: 1)),
    Variant("hints to the whole model", switch=_instead(whole, "ask", _unhinted)),
)  # fmt: skip

#: Of a proof.
PROOF = (
    Variant("targets", switch=_instead(_Search, "roots", _nothing)),
    Variant("trees", switch=_instead(_Search, "trees", _nothing)),
    Variant("trees below the plan's cost", switch=_instead(prove, "_TREES", 1)),
    Variant("machines apart", switch=_instead(prove, "_APART", 0)),
    Variant("packing", switch=_instead(Packing, "refutes", _nothing)),
    Variant("the bare rule", switch=_instead(tree, "bare", lambda rows, keep, limit: keep)),
    Variant("rounds of sweeping", switch=_instead(tree, "_ROUNDS", 1)),
    Variant("choice of splits", switch=_instead(tree, "_TRIED", 1)),
    Variant("patience with splits", switch=_instead(tree, "_PATIENCE", 1)),
)

#: What counted work cannot tell, and why.
WALL_ONLY = {
    "patterns": "work is not counted in them, so a counted solve leaves them out",
    "the prover's turns": "likewise; `--set proof` counts its cases apart from a search",
    "goals after the objective": "they change no plan's objective and no bound",
    "moves_a_unit": "is the unit",
}

#: What takes a setting out of effect where that is not 0.
_OFF: dict[str, object] = {
    "longest_turn": 1.0, "cooling": 1.0, "far": 1e9, "patience": 10**9, "news_left": 0.0,
    "most_apart": 1, "greedy_up_to": 1, "whole_columns": 1, "small_columns": 1,
    "many": 1, "settling_moves": 1, "heats": [_COLD] * len(DEFAULT.heats),
    "other_ladder": list(DEFAULT.ladder),
}  # fmt: skip
#: There is no search without them. (The shares of a mix are parts.)
_NEVER_OFF = {"burst", "ladder", "capacity_weight", "first_turn", "program_turn"}


def settings() -> tuple[Variant, ...]:
    """Every setting off, then every one halved, then doubled."""
    names = [f.name for f in fields(Parameters) if f.name not in {*WALL_ONLY, "mix"}]
    off = [(n, "off", _OFF.get(n, _times(getattr(DEFAULT, n), 0.0))) for n in names]
    scaled = [
        (name, how, _times(getattr(DEFAULT, name), factor))
        for how, factor in (("halved", 0.5), ("doubled", 2.0))
        for name in names
    ]
    return tuple(
        Variant(f"{name} {how}", {name: value})
        for name, how, value in (*off, *scaled)
        if KINDS[name].holds(value) and (how != "off" or name not in _NEVER_OFF)
    )


def _times(value: Any, factor: float) -> Any:
    if isinstance(value, tuple):
        return [_times(each, factor) for each in value]
    return round(value * factor) if isinstance(value, int) else value * factor
