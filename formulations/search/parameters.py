"""Every number that steers the search, in one place, each with why.

Tuned on instances of TorchRec's enumerator of seeds 300–309 and 400–409, on those of the data
folder and on TorchRec's production model only.
"""

from __future__ import annotations

#: Moves that count as one unit of work: about what one core makes in a second.
MOVES_A_UNIT = 500_000
#: The first turn of a part takes this many units; one that delivers nothing doubles its next one.
FIRST_TURN = 1.0
#: No turn takes more than this share of what is left: others may have something to tell.
LONGEST_TURN = 0.3
#: What turns grow by of a part that begins anew every time.
ANEW = 8.0
#: A turn counts as this share of what it was given at least, so that who has nothing to do now
#: is not asked without end.
LEAST_SPENT = 0.1
#: Weights that parts keep however little they have delivered, so that they are asked again: passes
#: of annealing need many tries, and descend faster than neighbourhoods where both deliver.
LEAST_WEIGHT, ANNEALING_WEIGHT = 0.15, 0.2
#: That of replica exchange up to so many tables; with more, moves are too few for many replicas.
REPLICAS_WEIGHT, REPLICAS_UP_TO = 0.6, 300
#: What one turn is credited with at most, as a share of the bound: a first plan is no more.
MOST_GAIN = 0.1
#: Gains far below this, as shares of the bound, decide nothing.
NOTABLE = 2e-3
#: What a part delivered counts half as much after every later turn of its side.
FORGETTING = 0.5
#: Temperatures at the first move of a pass, as penalties: from a choice of options, and from what
#: was reached; the last moves are colder by this factor. Tight instances want heat, loose ones
#: cold: all are tried, in this order.
COLD_STARTS, WARM_STARTS, COOLING = (0.008, 0.001), (0.004, 0.0008), 1 / 150
#: None hotter than this times the moves a table gets in a pass of this share of the time.
HOTTEST, PASS = 1e-4, 0.12
#: What annealing left is taken for this much worse every time that nothing came of it.
AGEING = 1.02
#: Without a plan, what annealing is near to counts for so many bounds more.
FAR = 10.0
#: Moves a table of the first try for a first plan, and the heats of tries.
FIRST_MOVES, FIRST_HEATS = 5_000, (0.1, 0.02)
#: No plan is mended that costs this much more than what annealing left may become.
NO_DEARER = 1.2
#: What a share of use over capacity weighs against a share of cost over the target at first, how
#: it follows the dearer of both, and within what.
CAPACITY_WEIGHT, HEAVIER, LIGHTER, WEIGHTS = 1.5, 1.3, 0.9, (0.4, 12.0)
#: Moves a table of the shortest pass.
FEWEST_MOVES = 10_000
#: Largest shards of the first choices of options, as shares of what a rank carries on average.
WIDTHS = (1.0, 0.5, 0.35, 0.25, 0.2, 0.18, 0.16, 0.14, 0.12, 0.1, 0.08, 0.05, 0.03)
#: What one that meets the target aims at next, above what it costs at least.
PACKED_ABOVE = 2e-3
#: With more options than this they are placed before anything else: the linear program takes long.
PACKED_FIRST = 50_000
#: Moves a table, and the heat, that settle each of them.
SETTLING, SETTLED = 100, 1e-3
#: Of 100 moves: options below the first, single shards below the second, swaps below the fifth; in
#: between: places looked at for a shard. The others take shards away together: of 100 of these,
#: below the sixth a busy rank and some others are packed anew, below the last after a table has
#: changed its option, the rest ruin and put back.
MIX = (34, 64, 8, 1, 94, 40, 80)
#: These last look at all tables: with more tables than so many a percent there are fewer.
REPACKED = 1200
#: Ladders of temperatures: the hottest, the coldest and how many, one for each side that makes
#: plans. Tight memory wants the second.
LADDERS = ((0.1, 1e-3, 14), (0.2, 1e-3, 16))
#: Moves of each replica between exchanges, and numbers that replicas may take in memory.
BURST, MOST_STATE = 500, 20_000_000
#: The first aim of replicas, above the bound; what it is raised by after a turn without a plan: the
#: first, or, if more, the second of the way to the best plan, as other missed aims are.
FIRST_AIM, RAISE, CLOSER = 0.07, 0.01, 0.3
#: Replicas begin anew after so many turns in a row without a plan, where the best one is this share
#: above the bound: they end on levels of their own, and which one is chance.
MISSES, LEVEL = 4, 0.035
#: After a plan the target falls by this share: small enough to be met at the same temperature.
SHRINK = 3e-4
#: The first target from a choice of options is this share above the bound; the first from the best
#: plan lies this share of the way to the bound. Where aims are met they move by the first factor
#: (nearer to the bound), where missed by the second, within these.
ABOVE, STEP, NEARER, FARTHER, LEAST_SHARE, MOST_SHARE = 0.02, 0.3, 0.5, 1.25, 1e-5, 0.7
#: What annealing left with so much excess a rank may become a plan of so many times that more.
PROMISE = 2.0
#: Neighbourhoods in a row that may find nothing before another placement is taken up.
PATIENCE = 12
#: Longest pause of the side that makes plans on small instances, in lengths of its last turn.
PAUSES = 3
#: Up to this share of the time the prover goes first whenever there is a better plan.
URGENT = 0.3
#: Columns up to which the whole model is tried, and up to which it runs from the first second with
#: all workers: below, CP-SAT proves in seconds to minutes.
WHOLE, SMALL = 40_000, 6_000
#: The whole model starts anew where a better plan leaves it less than this share of its options.
NEWS = 0.7
#: Or where the plan is notably better and it ran for no more than this share of what is left, or
#: for no longer than one turn may take and the plan closes so much of the gap.
YOUNG, MUCH = 0.05, 0.3
#: Where machines are kept apart for a start: by how much options and the plan may cost more than
#: the bound, next where there is none, the share of the time for it, and the share of the memory
#: of ranks left to spare, as shards do not fit to the last byte.
DEAREST, APART, SLACK = (0.15, 0.35, 0.6), 0.2, 0.01
#: Columns of that program beyond which HiGHS finds good choices sooner than CP-SAT.
HIGHS_BEYOND = 4_000
#: Options left times machines up to which machines are kept apart at all: of more, programs find
#: nothing in the time and go on long after it without hearing a stop.
MOST_APART = 300_000
#: The first turn of the program over pooled places: mostly it is solved in less.
POOLED = 4.0
#: That of the program that keeps machines apart on small instances: mostly it is solved in less
#: (``50x16_s303`` in 5 s, its bound 2% above the prover's).
MACHINES = 8.0
#: Options up to which TorchRec's greedy is asked for a first plan (a few seconds at most).
GREEDY_UP_TO = 20_000
#: How much longer a check takes beside a search than alone.
BESIDE = 1.5
#: The most of the time that may be kept for proof and check: the reader is slow, and slows a search
#: that has no plan yet.
MOST_KEPT = 0.5
#: Seconds that a side has to end when it is over: the longest call that does not ask is a slice of
#: annealing, or, once on a machine, the compiler.
LAST_WORDS = 2.0
