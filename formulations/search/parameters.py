"""Every number that steers the search, in one place, each with why.

Tuned on instances of TorchRec's enumerator of seeds 200, 221–229, 300–309 and 400–409, on those of
the data folder, on TorchRec's production model and, for what concerns small ones, on seeds 6000 to
6029 of benchmarks/small only. Each is an option of ``auto`` and ``scale``
(``Settings(options={"slack": 0.02})``, ``--set slack=0.02``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from formulations.settings import ValueType, number, several, whole


@dataclass(frozen=True)
class Parameters:
    """What may be set; a number a field."""

    #: Moves that count as one unit of work: about what one core makes in a second (0.9 to 3.3
    #: million on instances of 7 × 64 to 1,000 × 128; it has to be counted somehow).
    moves_a_unit: int = 2_000_000
    #: The first turn of a part takes this many units; one that delivers nothing doubles its next
    #: one.
    first_turn: float = 1.0
    #: No turn takes more than this share of what is left: others may have something to tell.
    longest_turn: float = 0.3
    #: What turns grow by of a part that begins anew every time.
    growth: float = 8.0
    #: A turn counts as this share of what it was given at least, so that who has nothing to do now
    #: is not asked without end.
    least_spent: float = 0.1
    #: Weights that parts keep however little they have delivered, so that they are asked again:
    #: passes of annealing need many tries, and descend faster than neighbourhoods where both
    #: deliver.
    least_weight: float = 0.15
    annealing_weight: float = 0.2
    #: That of replica exchange up to so many tables; with more, moves are too few for many
    #: replicas.
    replicas_weight: float = 0.6
    replicas_up_to: int = 300
    #: What one turn is credited with at most, as a share of the bound: a first plan is no more.
    most_gain: float = 0.1
    #: Gains far below this, as shares of the bound, decide nothing.
    notable: float = 0.002
    #: What a part delivered counts half as much after every later turn of its side.
    forgetting: float = 0.5
    #: Temperatures at the first move of a pass, as penalties: from a choice of options, and from
    #: what was reached; the last moves are colder by this factor. Tight instances want heat, loose
    #: ones cold: all are tried, in this order.
    cold_starts: tuple[float, ...] = (0.008, 0.001)
    warm_starts: tuple[float, ...] = (0.004, 0.0008)
    cooling: float = 1 / 150
    #: What annealing left is taken for this much worse every time that nothing came of it.
    ageing: float = 1.02
    #: Without a plan, what annealing is near to counts for so many bounds more.
    far: float = 10.0
    #: Moves a table of the first try for a first plan, and the heats of tries.
    first_moves: int = 5000
    first_heats: tuple[float, ...] = (0.1, 0.02)
    #: No plan is mended that costs this much more than what annealing left may become.
    no_dearer: float = 1.2
    #: What a share of use over capacity weighs against a share of cost over the target at first,
    #: how it follows the dearer of both, and within what.
    capacity_weight: float = 1.5
    heavier: float = 1.3
    lighter: float = 0.9
    capacity_weights: tuple[float, ...] = (0.4, 12.0)
    #: Moves a table of the shortest pass, and the most of the time that these may take.
    fewest_moves: int = 1500
    pass_share: float = 0.12
    #: Largest shards of the first choices of options, as shares of what a rank carries on average.
    widths: tuple[float, ...] = (
        1.0, 0.5, 0.35, 0.25, 0.2, 0.18, 0.16, 0.14, 0.12, 0.1, 0.08, 0.05, 0.03,
    )  # fmt: skip
    #: What one that meets the target aims at next, above what it costs at least.
    packed_above: float = 0.002
    #: Moves a table, and the heat, that settle each of them.
    settling_moves: int = 100
    settling_heat: float = 0.001
    #: Of 100 moves: options below the first, single shards below the second, swaps below the fifth;
    #: in between: places looked at for a shard. The others take shards away together: of 100 of
    #: these, below the sixth a busy rank and some others are packed anew, below the last after a
    #: table has changed its option, the rest ruin and put back.
    mix: tuple[int, ...] = (34, 64, 8, 1, 94, 40, 80)
    #: These last look at all tables: with more tables than so many a percent there are fewer.
    repacked: int = 1200
    #: Ladders of temperatures: the hottest, the coldest and how many, one for each side that makes
    #: plans. Tight memory wants the second.
    ladder: tuple[float, ...] = (0.1, 1e-3, 14)
    other_ladder: tuple[float, ...] = (0.2, 1e-3, 16)
    #: Moves of each replica between exchanges.
    burst: int = 500
    #: The first aim of replicas, above the bound, or above what machines were chosen at; what it is
    #: raised by after a turn without a plan: the first, or, if more, the second of the way to the
    #: best plan, as other missed aims are.
    first_aim: float = 0.07
    told_aim: float = 0.01
    raised: float = 0.01
    closer: float = 0.3
    #: Replicas begin anew after so many turns in a row without a plan, where the best one is this
    #: share above the bound: they end on levels of their own, and which one is chance.
    stuck_after: int = 4
    stuck_above: float = 0.035
    #: After a plan the target falls by this share: small enough to be met at the same temperature.
    shrink: float = 3e-4
    #: The first target from a choice of options is this share above the bound; the first from the
    #: best plan lies this share of the way to the bound. Where aims are met they move by the first
    #: factor (nearer to the bound), where missed by the second, within these.
    first_above: float = 0.02
    first_step: float = 0.3
    nearer: float = 0.5
    farther: float = 1.25
    least_share: float = 1e-5
    most_share: float = 0.7
    #: What annealing left with so much excess a rank may become a plan dearer by so many times it.
    excess_price: float = 2.0
    #: Neighbourhoods in a row that may find nothing before another placement is taken up.
    patience: int = 12
    #: On small instances the side that makes plans leaves the exact model alone for this share of
    #: the time, but no longer than this: what takes longer gains more from good plans; how much
    #: lower its priority is after that (``nice``).
    alone_first: float = 0.1
    alone_most: float = 1.5
    niceness: int = 5
    #: Up to this share of the time the prover goes first whenever there is a better plan.
    urgent_share: float = 0.3
    #: Columns up to which the whole model is tried, and up to which it runs from the first second
    #: with all workers: below, CP-SAT proves in seconds to minutes.
    whole_columns: int = 40_000
    small_columns: int = 6000
    #: On small instances it has a side of its own for this share of the time, and until the end
    #: where the plan is then no more than that share above the bound: more, and CP-SAT proves
    #: nothing in minutes, while annealing on both sides finds far better plans.
    exact_first: float = 0.2
    hopeless: float = 0.1
    #: The whole model starts anew where a better plan leaves it less than this share of its
    #: options, since fewer are often proved far sooner; more, and what it has learned is worth
    #: more.
    news_left: float = 0.7
    #: It is young as long as it ran for no more than this share of what is left, or than all the
    #: time before it.
    young_share: float = 0.05
    #: Or where another part's plan is notably better while it is young, or closes so much of the
    #: gap while it ran for no longer than one turn may take.
    much_of_gap: float = 0.3
    #: Starts leave room for packing: what shards that choose their rank use more than they do,
    #: turn by turn; the share of the memory of ranks taken away besides; and the gap at which the
    #: program over pooled places stops there.
    surcharges: tuple[float, ...] = (0.3, 0.1, 0.03, 0.0)
    slack: float = 1e-3
    rough: float = 0.01
    #: On small instances the program that keeps machines apart makes them, with the first of
    #: these surcharges: by how much options and the plan may cost more than the bound, next where
    #: there is none, and the share of the time for it.
    dearest: tuple[float, ...] = (0.15, 0.35, 0.6)
    apart_share: float = 0.12
    #: Options left times machines up to which machines are kept apart at all: of more, programs
    #: find nothing in the time and go on long after it without hearing a stop.
    most_apart: int = 300_000
    #: And up to which they answer within seconds.
    few_apart: int = 5_000
    #: The first turn of the program over pooled places: mostly it is solved in less.
    pooled_turn: float = 4.0
    #: That of the program that keeps machines apart, asked for what costs less than so much of the
    #: way from the bound to the best it knows: mostly it answers in less. As long as it does, it
    #: goes before all else for this share of the time, until it was silent so many times in a row.
    machines_turn: float = 10.0
    way: float = 0.5
    answering_share: float = 0.6
    silence: int = 3
    #: Share of the time left for placing what it chose: a fixed 1.5 s took all from the bound in
    #: solves of a few seconds.
    placing: float = 0.025
    #: Options up to which TorchRec's greedy is asked for a first plan (a few seconds at most). With
    #: more, choices are packed before anything else: a first try of annealing takes minutes there,
    #: and the linear program long.
    greedy_up_to: int = 20_000
    #: Seconds that a side has to end when it is over: the longest call that does not ask is a slice
    #: of annealing, or, once on a machine, the compiler.
    last_words: float = 2.0

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
