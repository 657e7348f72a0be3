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
#: Weights that parts keep however little they have delivered, so that they are asked again: passes
#: of annealing need many tries, and descend faster than neighbourhoods where both deliver.
LEAST_WEIGHT, ANNEALING_WEIGHT = 0.15, 1.0
#: What a part delivered counts half as much after every later turn of its side.
FORGETTING = 0.5
#: Temperatures at the first move of a pass, as penalties: from one that forgets the choice of
#: options to one that keeps nearly all of it. Which is best depends on how many moves a table gets,
#: so it is learned.
HEATS = (0.06, 0.2, 0.02, 0.005, 0.001)
#: Those of passes that start from the best plan.
WARM_HEATS = (0.06, 0.02, 0.005, 0.001)
#: The last moves are this much colder: as good as descent.
COOLING = 1 / 150
#: How often the heat that did best is taken once all were tried; else another at random.
EXPLOIT = 0.6
#: What a share of use over capacity weighs against a share of cost over the target at first, how
#: it follows the dearer of both, and within what.
CAPACITY_WEIGHT, HEAVIER, LIGHTER, WEIGHTS = 1.5, 1.3, 0.9, (0.4, 12.0)
#: Moves a table of the shortest pass.
FEWEST_MOVES = 10_000
#: Largest shards of the first choices of options, as shares of what a rank carries on average.
WIDTHS = (1.0, 0.5, 0.25, 0.12, 0.06, 0.03)
#: Of 100 moves: options below the first, single shards below the second, the rest swaps and, from
#: the last on, ruin and put back; in between: places looked at for a shard.
MIX = (35, 65, 8, 1, 98)
#: After a plan the target falls by this share: small enough to be met at the same temperature.
SHRINK = 3e-4
#: The first target, as a share above the bound. Where it is met the next is nearer by this factor;
#: where it is missed the next lies this far on the way to what was reached. Never outside these.
ABOVE, NEARER, FARTHER, LEAST_ABOVE, MOST_ABOVE = 0.03, 0.8, 0.3, 1e-5, 8.0
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
