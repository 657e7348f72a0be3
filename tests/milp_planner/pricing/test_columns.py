"""Tables and options as arrays."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from milp_planner.pricing.job import CODE, OptionColumns, choice_code, table_columns
from milp_planner.pricing.options import Choice
from tests.milp_planner.pricing.build import model


def test_table_columns_hold_what_the_model_says() -> None:
    """Rows, element sizes, state and flags, one per table."""
    found = table_columns(
        model({"dtype": "fp16", "optimizer": "adam"}, {"kind": "dynamicemb", "weighted": True})
    )
    assert found.rows.tolist() == [1000, 1000]
    assert found.element.tolist() == [2, 4]
    assert found.state_over.tolist() == [2, 1]
    assert found.state_under.tolist() == [1, 64]
    assert found.weighted.tolist() == [False, True]


def test_inference_drops_the_state() -> None:
    """No optimizer state is kept."""
    found = table_columns(model({"optimizer": "adam"}, mode="inference"))
    assert found.state_over.tolist() == [0]
    assert found.runtime_row.tolist() == [256]


def test_choices_become_codes_and_masks() -> None:
    """Codes give back their names; masks tell rows split over all ranks from those over a
    machine's."""
    choices = [
        Choice("row_wise", "CACHING", Fraction(3, 10), 64),
        Choice("table_row_wise", "HOST_ONLY", Fraction(0), 64, machine_ranks=4),
        Choice("column_wise", "HBM_ONLY", Fraction(1), 32, 2),
    ]
    codes = np.array([choice_code(choice, 16) for choice in choices])
    columns = OptionColumns(np.arange(3), *(codes[:, i] for i in range(CODE)))
    assert columns.group_ranks.tolist() == [16, 4, 1]
    assert columns.is_sharding("row_wise", "column_wise").tolist() == [True, False, True]
    assert columns.is_mode("HOST_ONLY").tolist() == [False, True, False]
    assert (columns.over[0], columns.under[0]) == (3, 10)
    assert columns.at(np.array([2, 2])).table.tolist() == [2, 2]
