"""Every number that steers the search, in one place, each with why.

Tuned on instances of TorchRec's enumerator of seeds 300–309 and on those of the data folder only.
"""

from __future__ import annotations

#: Moves that count as one unit of work: about what one core makes in a second.
MOVES_A_UNIT = 500_000
#: The first turn of a part takes this many units; one that delivers nothing doubles its next one.
FIRST_TURN = 1.0
#: No turn takes more than this share of what is left: others may have something to tell.
LONGEST_TURN = 0.3
#: Weight that a part keeps however little it has delivered, so that it is asked again.
LEAST_WEIGHT = 0.15
#: What a part delivered counts half as much after every later turn of its side.
FORGETTING = 0.5
#: Temperatures, as penalties: a hot run forgets its start, a warm one keeps the large shards. The
#: last moves of both are as good as descent.
HOT, WARM, COLD = 0.2, 0.03, 3e-4
#: Moves a table of the shortest hot pass; a warm one needs half.
FEWEST_MOVES = 2_000
#: Largest shards of the first choices of options, as shares of what a rank carries on average.
WIDTHS = (1.0, 0.5, 0.25, 0.12, 0.06, 0.03)
#: Of 100 moves: options below the first, single shards below the second, the rest swaps and, from
#: the last on, ruin and put back; in between: places looked at for a shard.
MIX = (30, 55, 8, 1, 90)
#: After a plan the target falls by this share: small enough to be met at the same temperature.
SHRINK = 3e-4
#: The first target lies this far on the way from the bound to the best plan; it moves with what is
#: met. Without a plan, this far above the bound, in turn.
AIM = 0.3
AIMS_WITHOUT_PLAN = (1.04, 1.12, 1.4, 2.0)
#: Neighbourhoods in a row that may find nothing before another placement is taken up.
PATIENCE = 12
#: Columns up to which the whole model is tried, and up to which it runs from the first second with
#: all workers: below, CP-SAT proves in seconds to minutes.
WHOLE, SMALL = 40_000, 6_000
#: The whole model starts anew where a better plan leaves it less than this share of its options.
NEWS = 0.7
#: Seconds that HiGHS is given at least for the pooled program: mostly it needs less than one.
POOLED = 4.0
#: Seconds that a side has to end when it is over: the longest call that does not ask is a slice of
#: annealing, or, once on a machine, the compiler.
LAST_WORDS = 2.0
