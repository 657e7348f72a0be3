"""What weights and heights are worth in a box of peaks."""

from formulations.instance import IntArray
from formulations.proof.peaks import Heights, worths
from formulations.proof.portions import Limits, Portion, least_load

#: Two shards of weight 1: of load 4 and 1 step, of load 3 and 2 steps.
LISTS = [[Portion(4, 1, 1, 0, 1)], [Portion(3, 2, 1, 1, 1)]]


def highest(
    least: IntArray, heights: Heights, ranks: int, gain: tuple[int, int, int]
) -> tuple[int, int, int]:
    """The most that weights and heights are worth, where steps are of 1; steps and weight."""
    found = worths(least, heights, 1, ranks, gain)
    steps, weight = divmod(int(found.argmax()), found.shape[1])
    return int(found.max()), steps, weight


def test_worths_respect_the_box() -> None:
    """Weights are worth 10 for two ranks; both heights count at least what the box says."""
    least, cost = least_load(LISTS, Limits(9, 3, 2)), (-1, -1, 0)
    free = Heights.within((0, 100), (0, 100), 100)
    assert highest(least, free, 10, cost) == (20 - 7 - 3, 3, 2)
    assert highest(least, Heights.within((0, 6), (0, 100), 100), 10, cost) == (5, 1, 1)
    assert highest(least, Heights.within((5, 100), (0, 100), 100), 10, cost) == (10, 3, 2)
    assert highest(least, Heights.within((0, 100), (0, 100), 9), 10, cost) == (5, 1, 1)
    assert Heights.within((5, 100), (5, 100), 9).empty


def test_heights_rise_where_a_load_pays_more_than_it_costs() -> None:
    """By hand: a load in A adds 2, so A rises to its limit or to what B leaves; a step adds 3."""
    least = least_load(LISTS, Limits(9, 3, 2))
    assert highest(least, Heights.within((0, 20), (0, 4), 100), 10, (2, -1, 0)) == (57, 3, 2)
    assert highest(least, Heights.within((0, 20), (0, 4), 21), 10, (2, -1, 0)) == (53, 3, 2)
    assert highest(least, Heights.within((0, 20), (0, 3), 100), 10, (-1, -1, 3)) == (19, 3, 2)


def test_the_second_height_lies_in_its_step() -> None:
    """By hand: with steps of 5 and a load in B that adds 1, B is 9 in step 1, 12 in step 2."""
    least = least_load(LISTS, Limits(9, 2, 2))
    found = worths(least, Heights.within((0, 20), (6, 12), 100), 5, 10, (0, 1, 0))
    assert found[1].max() == 10 + 9
    assert found[2].max() == 10 + 12
    assert (found[0] < 0).all()
