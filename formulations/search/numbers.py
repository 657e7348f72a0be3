"""The numbers of the search that no option sets, each with its unit.

Those that options set are :class:`formulations.search.parameters.Parameters`. A *share* is a part
of one, a *temperature* a penalty (:mod:`formulations.search.kernels`), and a *unit* one of the
clock's (seconds, or counted work).
"""

from __future__ import annotations

from dataclasses import dataclass

# Of the whole search.
#: Seconds that the check of a certificate may take even if less time is left, and that a side has
#: to end when the search is over (a compiler takes longer, and is left behind).
GRACE = 2.0
#: Share of the time left that certifying the caller's gap may take.
CLOSING = 0.5
#: Days after which a folder of compiled loops that nobody has used is removed.
UNUSED = 90

# Of a state, and of the moves that sample it.
#: Moves between two checks of the clock: a few hundredths of a second.
SLICE = 20_000
#: Tables to tidy, or shards to move for evenness, between two looks at the time; most rounds over
#: all tables.
PART, ROUNDS = 64, 20
#: Places that a shard of a first state is compared at.
LOOKS = 256
#: Cost at which targets are capped, so that their sum over phases stays below 2^63.
FAR_TARGET = 2**59
#: Cost below that of every plan.
NOTHING = -(2**62)
#: Added to the size of shards on all ranks of a machine: larger than the size of any shard, which
#: is a share.
WHOLE_MACHINE = 2.0**62
#: A running penalty below this is recomputed exactly.
NO_PENALTY = 1e-9
#: Penalty: while tidying, a unit above a capacity weighs twice this; one above the objective, far
#: less.
BROKEN = 5e5
#: Share of this added to the penalty: the rank's loads times those of the shard, as shares of their
#: limits (Panigrahy et al., "Heuristics for vector bin packing", 2011). So of equally penalised
#: ranks the one is taken that has most left of what the shard needs. While tidying, a share that no
#: unit of the objective is worth (``Sampler._strict``).
TIE = 1e-7
#: Of 100 moves under ``step_time``, those that shift some of a phase's target to another phase.
SHIFTS = 2
#: Ranks of which the most penalised is the busy one.
BUSY_OF = 4
#: Tables that a ruin lifts: at least, and how many numbers are possible. Of tables elsewhere than
#: on the busy rank, one in so many is lifted as well; and the tables drawn for each one wanted.
RUINED_LEAST, RUINED_WAYS, RUINED_ELSEWHERE, RUINED_DRAWN = 2, 4, 16, 12
#: Options that a ruined table is tried at: its own, and others.
REINSERTED = 3
#: Most ranks, beside the busy one, and most shards that are repacked at once.
REPACKED_RANKS, REPACKED_SHARDS = 3, 160
#: Bits of the noise in the order in which shards are packed: at least, and how many are possible.
NOISE_BITS, NOISE_WAYS = 8, 8
#: One in so many changes of an option returns a table to production, where moves count.
HOMING = 5

# Of the makers of plans.
#: No turn takes longer than this multiple of its length; and its fewest moves.
OVERDUE, FEWEST = 3.0, 1000
#: Most targets of a sweep.
SWEPT = 16
#: Share of what a target leaves above the phases' means that one shard of a choice may take, where
#: each phase has a peak.
RAISED = 0.5
#: Rounds in which prices, unused time and what all ranks carry follow a choice that fits.
FITTING_ROUNDS = 8
#: Tables for each class of equal ones, at least, where choices in counts of them are placed.
#: And how many times the moves that improve each packed choice are made.
EQUAL, SETTLED = 2, 4
#: Steps of bisection for the price of a resource.
FITTING_STEPS = 24

# Of goals as rows.
#: The fill of a place is counted in this many parts of its capacity, rounded up.
PARTS = 1000
#: Bytes that exceed every sum of an instance, so they are no limit.
LOOSE = 2**61


@dataclass(frozen=True)
class Near:
    """Of plans near yesterday's."""

    #: For each try: the multiple of the limits on moves that holds on the way (None: no limit), the
    #: share by which a plan may cost more than the wish (None: it may cost anything), and the
    #: temperatures of the first and the last move (cold ones leave most tables where they are).
    tries: tuple[tuple[int | None, float | None, tuple[float, float]], ...] = (
        (1, 0.001, (1e-4, 1e-6)), (1, 0.01, (3e-4, 1e-6)), (1, 0.05, (1e-4, 1e-6)),
        (3, 0.01, (3e-4, 1e-6)), (3, 0.05, (1e-4, 1e-6)), (3, 0.5, (1e-4, 1e-6)),
        (None, 0.2, (1e-4, 1e-6)), (None, None, (2e-3, 2e-5)),
    )  # fmt: skip
    #: So many of the last tries are made even when the time is over.
    late: int = 3
    #: Moves per table of one try.
    moves: int = 100
    #: These limits: this many tables, or one table in this many, whichever is more; and of bytes
    #: this multiple of the largest overflow, or that of what must move.
    tables: int = 30
    room: int = 4
    above: int = 2
    #: Temperatures of the first and the last move of passes that improve a plan, and the number of
    #: passes in a row without success that ends the search.
    heats: tuple[float, float] = (2e-4, 2e-6)
    patience: int = 6
    #: A plan met in these passes lowers the target by this share.
    shrink: float = 5e-4
    #: First target of these passes, as a share of the way from the plan to the bound; a failure
    #: multiplies that share by the second number, a success divides it.
    step: float = 0.2
    less: float = 0.6
    #: Limits on moved bytes while a plan of at most a given cost is sought, as shares of all bytes,
    #: and the passes within each.
    shares: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0)
    passes: int = 6
    #: Moves per table of the shortest and the longest pass, and the share of the time left that
    #: one pass may take.
    least: int = 25
    longest: int = 300
    share: float = 0.4
    #: Multipliers whose bound is below this share of an average rank's cost are not used.
    weak: float = 0.5
    #: Moves may choose options whose bound, at the multipliers, is at most this share above the
    #: best bound.
    worth: float = 0.005


@dataclass(frozen=True)
class Peaked:
    """Of boxes of the phases' peaks."""

    #: Most tables, or classes of equal tables where patterns count them; with more, a bound takes
    #: too long, and many shards on a rank even all phases. And most tables to put into classes.
    #: Where the tree's bound is this share of the best one, it goes before other parts; where it is
    #: not after so many turns, it is given up. Until then, the second share will do.
    tables: int = 400
    most: int = 4000
    near: float = 0.97
    rising: float = 0.9
    turns: int = 3
    #: Share of the ranks' memory that boxes leave empty where the shards of what others take do not
    #: fit.
    room: float = 0.07
    #: A tree whose bound has risen by less than this share of the plan's cost in so many turns, and
    #: in so many boxes, goes before no other part.
    risen: float = 1e-4
    idle: int = 2
    few: int = 12
    #: While a tree may grow, a certificate is made where it closes this share of the gap.
    worth: float = 0.05
    #: The tree is built anew when a better plan leaves less than this share of its options.
    fewer: float = 0.9


@dataclass(frozen=True)
class Passes:
    """Of passes that each aim a step below the last value of a goal."""

    #: Temperatures of the first and the last move of a pass, in turn; and its moves per table.
    heats: tuple[tuple[float, float], ...]
    moves: int
    #: The first step, as a share of what is above the bound; a failure multiplies it by the second
    #: number. Failures in a row that end it.
    step: float
    less: float
    patience: int


@dataclass(frozen=True)
class Aims:
    """Of the goals after the objective."""

    #: Shares of the objective by which a plan may be more expensive on the way. Many small steps
    #: can make it cheaper in the end, as when two thousand tables leave all ranks one at a time.
    slacks: tuple[float, ...] = (0.0, 1e-3, 1e-2)
    #: Options up to which a pass over all tables is quick enough to begin after the time limit.
    quick: int = 20_000
    #: Of all goals but moved bytes, and of these; and a number of moves that only time limits.
    passes: Passes = Passes(((2e-3, 1e-5), (2e-2, 1e-5)), 2_000, 0.25, 0.25, 4)
    homeward: Passes = Passes(((2e-4, 2e-6),), 300, 0.2, 0.6, 6)
    endless: int = 2**60
    #: Share of the time for moved bytes in which a plan near the earlier one is sought.
    near: float = 0.6
    #: Columns up to which one solve without presolve gives both plan and bound.
    columns: int = 3_000
    #: Share of the time for plans where plan and bound take a solve each.
    for_plans: float = 0.6
    #: Options and placement variables up to which the exact model is solved.
    whole: int = 40_000
    #: Time for all aims, as a share of the time already spent, and its minimum and maximum in
    #: units; goals that the caller names get the maximum.
    share: float = 1.0
    least: float = 3.0
    most: float = 10.0
    #: Share of the time limit kept for the goals, and its maximum in units.
    kept: float = 0.1
    most_kept: float = 6.0
    #: Units per option for the one pass of the compiled loops that always runs, and the largest
    #: share of the limit for it.
    each: float = 4e-5
    most_afterwards: float = 0.2
    #: Where the caller sets no tolerance: the share of the objective given up if a rank fuller than
    #: ``roomy`` gains at least ``worth`` of room (both in ``PARTS``).
    given: float = 1e-4
    roomy: int = 800
    worth: int = 100


NEAR, PEAKED, AIMS = Near(), Peaked(), Aims()
