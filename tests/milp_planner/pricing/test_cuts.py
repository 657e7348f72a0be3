"""Legal widths of column shards."""

from __future__ import annotations

import pytest

from milp_planner.pricing.cuts import column_cuts, is_even


@pytest.mark.parametrize(
    ("dim", "cuts"),
    [
        (512, [(256, 2), (128, 4), (64, 8), (32, 16)]),
        (128, [(64, 2), (32, 4)]),
        (96, [(48, 2), (32, 3)]),
        (100, [(52, 2)]),
        (63, []),
    ],
)
def test_column_cuts(dim: int, cuts: list[tuple[int, int]]) -> None:
    """Even cuts into multiples of four columns, of 32 or more."""
    assert list(column_cuts(dim, None)) == cuts


def test_asked_for_widths_are_multiples_of_four_below_dim() -> None:
    """Widest first; the last shard may be narrower; other widths are no cuts."""
    assert list(column_cuts(128, (96, 8, 30, 128))) == [(96, 2), (8, 16)]


def test_even_means_no_narrower_width_gives_as_many_shards() -> None:
    """100 columns in two shards: 52 and 48, not 96 and 4."""
    assert is_even(100, 52, 2)
    assert not is_even(100, 96, 2)
