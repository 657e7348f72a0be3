"""The settings of the search, each with its purpose.

They were tuned on instances of TorchRec's enumerator (seeds 200, 221–229, 300–309 and 400–409), on
those of the data folder, on TorchRec's production model and, for small instances, on seeds 6000 to
6029 of its generator only. Each is an option of ``auto`` and ``scale``
(``Settings(options={"slack": 0.02})``, ``--set slack=0.02``). docs/findings.md has what
the parts buy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from formulations.settings import ValueType, number, several, whole


@dataclass(frozen=True)
class Parameters:
    """One setting a field."""

    #: Moves that count as one unit of work: about what one core makes in a second (0.9 to 3.3
    #: million on instances of 7 tables × 64 ranks to 1,000 × 128).
    moves_a_unit: int = 2_000_000
    #: Length of a part's first turn, in units of the clock. A turn without success doubles the next
    #: one.
    first_turn: float = 1.0
    #: The longest turn, as a share of the time left.
    longest_turn: float = 0.3
    #: Temperatures at the first move of a pass, as penalties; the last move is colder by
    #: ``cooling``. Tight instances need heat, loose ones cold, so passes try each in turn.
    heats: tuple[float, ...] = (0.008, 0.001)
    cooling: float = 1 / 150
    #: Penalty for a share of use above capacity, where the same share of cost above the target is
    #: one.
    capacity_weight: float = 1.5
    #: Moves per table that improve each packed choice.
    settling_moves: int = 100
    #: Percentages of moves: options below the first, single shards below the second, swaps below
    #: the fifth; the third and the fourth say how many places a move compares. The other moves
    #: relocate several shards: below the sixth percentage they repack a busy rank and some others,
    #: below the last one they do so after a table has changed its option; the rest ruin and
    #: recreate.
    mix: tuple[int, ...] = (34, 64, 8, 1, 94, 40, 80)
    #: Those visit all tables: their percentage is at most this number divided by that of tables.
    many: int = 1200
    #: Temperatures of replica exchange (the hottest, the coldest, how many) for each of the first
    #: two workers. Tight memory needs the second ladder.
    ladder: tuple[float, ...] = (0.1, 1e-3, 14)
    other_ladder: tuple[float, ...] = (0.2, 1e-3, 16)
    #: Moves of each replica between exchanges.
    burst: int = 500
    #: A plan is far from the bound, or from the cost of a choice, at this share above it: targets
    #: start there without a plan, replicas begin anew, and the exact model gives up its side of a
    #: small instance. Above it, CP-SAT proves nothing in minutes, while annealing on both sides
    #: finds far better plans.
    far: float = 0.1
    #: A missed target of replicas rises by this share of itself, or by ``step`` of the way to the
    #: best plan; a plan that exceeds a target of a sweep by no more nearly meets it; programs over
    #: pooled places with room for packing stop at this gap.
    margin: float = 0.01
    #: First target of a pass, as a share of the way from the best plan to the bound. A target that
    #: was met doubles that share, one that was missed halves it.
    step: float = 0.3
    #: A plan lowers the target by this share, so little that the states need not be heated to meet
    #: it. A sweep of targets ends when its plan is this close to the bound, and from then on the
    #: program with separate machines is solved to its optimum.
    shrink: float = 3e-4
    #: Replicas restart after this number of turns in a row without a plan if the best plan is far
    #: above the bound, because which plan they end at is chance. The program with separate machines
    #: goes first until this number of its turns had no result.
    patience: int = 4
    #: On small instances the exact model has a side to itself for this share of the time, and until
    #: the end if the plan is then not far above the bound.
    exact_first: float = 0.2
    #: Parts that go before others (the prover on small instances, the program with separate
    #: machines) do so while they have used less than this share of the time.
    urgent_share: float = 0.5
    #: A cold pass from a bound's choice does so for that share of the time of the makers of plans,
    #: and for this share of all, where other parts hardly leave the makers a turn.
    news_share: float = 0.2
    #: Placing columns up to which the exact model runs at all, and up to which an instance is
    #: small: then CP-SAT solves the exact model with all workers from the start.
    whole_columns: int = 40_000
    small_columns: int = 6000
    #: The exact model restarts when a better plan leaves less than this share of its options:
    #: fewer options are often proved sooner, while with more of them it had better keep what it
    #: has learned.
    news_left: float = 0.7
    #: Programs that choose options to start from leave room for packing: shards that choose their
    #: rank use more by these shares, one solve after the other, and every rank's memory shrinks by
    #: ``slack``.
    surcharges: tuple[float, ...] = (0.3, 0.1, 0.03, 0.0)
    slack: float = 1e-3
    #: First turn of the programs over pooled places and with separate machines, and of those that
    #: choose options to start from; mostly they are solved sooner.
    program_turn: float = 10.0
    #: Options left times machines up to which the program with separate machines is solved at all:
    #: beyond it, CP-SAT finds nothing in time and does not hear a stop for long.
    most_apart: int = 300_000
    #: Options up to which TorchRec's greedy heuristic makes a first plan (a few seconds at most).
    #: With more, choices are packed before anything else, because a first pass of annealing takes
    #: minutes there and the linear program takes long.
    greedy_up_to: int = 20_000

    @classmethod
    def of(cls, options: Mapping[str, object]) -> Self:
        """Those that the options set, the rest as they are."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: _frozen(v) for name, v in options.items() if name in known})


def _frozen(value: object) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _kind(default: object) -> ValueType:
    if isinstance(default, tuple):
        counts = all(isinstance(value, int) for value in default)
        return several(len(default), whole(0) if counts else number())
    return whole() if isinstance(default, int) else number()


DEFAULT = Parameters()
#: What each may be.
KINDS = {field.name: _kind(field.default) for field in fields(Parameters)}
