"""Vectors of multipliers: sums by hand, and back and forth between file and rows."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from formulations.errors import InstanceError
from formulations.instance import Instance
from formulations.proof.build import build_rows
from formulations.proof.prove import symmetric_lp
from formulations.proof.weights import choice_prices, option_prices, vector_of, vector_to_list
from tests.corpus import mistakes
from tests.formulations.examples import EVERY, at, built, four_tables
from tests.formulations.strategies import instances

COST = {"row": "cost", "of": "busiest_rank", "times": 1}


def test_prices_by_hand() -> None:
    """Costs once and bytes twice: fast is 8 + 2·6, slow 14 + 2·1; both ranks are on the right."""
    rows = build_rows(four_tables())
    vector = vector_of(rows, [COST, {"row": "capacity", "of": "hbm", "times": 2}])
    prices = option_prices(rows, choice_prices(rows, vector))
    assert prices.tolist() == [20, 16] * 4
    assert (vector.level, vector.room) == (2, 2 * 2 * 9)
    assert (vector.right(20), vector.right(None)) == (36 + 40, 36)


def fused() -> Instance:
    """Two tables of one fusion group at level 0 or 1."""
    table = {f"o{level}": (at(EVERY, 1), ("g", level)) for level in (0, 1)}
    return built([table] * 2, machines=[[0]])


def test_a_fusion_group_stands_at_its_dearest_level() -> None:
    """Level 0 has 3 + 4, level 1 has 5: at most 7 is added on the right, whatever the level."""
    items = [
        {"row": "fusion", "of": "g", "table": table, "level": level, "times": times}
        for table, level, times in ((0, 0, 3), (1, 0, 4), (1, 1, 5))
    ]
    rows = build_rows(fused())
    vector = vector_of(rows, items)
    assert (vector.level, vector.room) == (0, 7)
    assert option_prices(rows, choice_prices(rows, vector)).tolist() == [3, 0, 4, 5]


@pytest.mark.parametrize("item", mistakes(__file__, "what the rows do not have is refused"))
def test_what_the_rows_do_not_have_is_refused(item: dict[str, Any]) -> None:
    """Wrong types and unknown names, places, tables and machines are refused in a sentence."""
    with pytest.raises(InstanceError, match="does not fit the instance"):
        vector_of(build_rows(four_tables()), [COST | item])


def test_like_ranks_have_one_multiplier() -> None:
    """Two like ranks are one row: a vector with 1 on one of them and 2 on the other is refused."""
    rows = build_rows(four_tables())
    halves = [COST | {"at": at, "times": times} for at, times in ((0, 1), (1, 2))]
    with pytest.raises(InstanceError, match="like places have different multipliers"):
        vector_of(rows, halves)
    both = [COST | {"at": at, "times": 3} for at in (0, 1)]
    assert vector_of(rows, both).of_row == vector_of(rows, [COST | {"times": 3}]).of_row


def test_written_and_read_again() -> None:
    """Vectors of sixty instances' certificates are read back as written; some are not empty."""
    seen = []

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(instances())
    def each(instance: Instance) -> None:
        solved = symmetric_lp(instance, targets=False)
        if solved is None or not instance.num_tables:
            return
        rows = build_rows(instance)
        for vector in solved.certificate.vectors:
            again = vector_to_list(rows, vector_of(rows, list(vector)))
            assert vector_of(rows, again).of_row == vector_of(rows, list(vector)).of_row
            seen.extend(again)

    each()
    assert len(seen) > 10
