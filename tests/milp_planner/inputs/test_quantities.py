"""Sizes, counts, ratios and bandwidths as people write them."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from milp_planner.inputs import quantities
from milp_planner.inputs.quantities import (
    SIZE_UNITS,
    parse_bandwidth,
    parse_bytes,
    parse_count,
    parse_percent,
    parse_ratio,
    show,
)
from tests.corpus import mistakes

PARSERS = (parse_bytes, parse_count, parse_bandwidth, parse_ratio, parse_percent)


@pytest.mark.parametrize(
    ("parser", "values"),
    [
        (parse_bytes, {
            "80GiB": 85_899_345_920, "1.5TB": 1_500_000_000_000, "1.5 TiB": 1_649_267_441_664,
            "2_000_000 B": 2_000_000, "0.5KiB": 512, 4096: 4096, 2**53 - 1: 2**53 - 1,
        }),
        (parse_count, {
            "2M": 2_000_000, "2_000_000": 2_000_000, "12.5M": 12_500_000, "1B": 10**9,
            "1G": 10**9, 7: 7,
        }),
        (parse_bandwidth, {"450GB/s": 450 * 10**9, "12.5GiB/s": 13_421_772_800}),
        # the decimal that was written, not the binary float nearest to it
        (parse_ratio, {
            "0.35": Fraction(7, 20), "35%": Fraction(7, 20), 0.1: Fraction(1, 10),
            0.07: Fraction(7, 100), 1: Fraction(1), "12.5%": Fraction(1, 8),
        }),
        (parse_percent, {15: Fraction(15), "15%": Fraction(15), 12.5: Fraction(25, 2)}),
    ],
)  # fmt: skip
def test_quantities_by_hand(parser: Callable[[object], object], values: dict[Any, Any]) -> None:
    """Decimal units are powers of 1000, binary ones of 1024; a percentage means the same with and
    without its sign."""
    assert {text: parser(text) for text in values} == values


@pytest.mark.parametrize(("parser", "value", "sentence"), mistakes(__file__, "quantities"))
def test_mistakes(parser: str, value: object, sentence: str) -> None:
    """Only exact units pass, no size is rounded, and the sentence names what is nearest."""
    with pytest.raises(ValueError, match=sentence):
        getattr(quantities, parser)(value)


@given(st.integers(0, 2**20), st.sampled_from(sorted(SIZE_UNITS)))
def test_whole_sizes_are_number_times_unit(number: int, unit: str) -> None:
    """Every whole number with every unit is their product, or refused as too large."""
    expected = number * SIZE_UNITS[unit]
    if expected < 2**53:
        assert parse_bytes(f"{number}{unit}") == expected
    else:
        with pytest.raises(ValueError, match="below 2"):
            parse_bytes(f"{number}{unit}")


@given(st.integers(1, 100), st.integers(1, 100))
def test_fractions_survive(numerator: int, denominator: int) -> None:
    """p/q is read as exactly p/q."""
    assert parse_ratio(f"{numerator}/{denominator}") == Fraction(numerator, denominator)


@given(
    st.one_of(
        st.text(max_size=30),
        st.integers(),
        st.floats(),
        st.booleans(),
        st.none(),
        st.lists(st.integers(), max_size=2),
    ),
    st.sampled_from(PARSERS),
)
def test_parsers_only_raise_value_errors(value: object, parser: object) -> None:
    """Whatever it is given, a parser returns an exact number or raises a ValueError."""
    try:
        result = parser(value)  # type: ignore[operator]
    except ValueError:
        return
    assert isinstance(result, int | Fraction)
    assert not isinstance(result, bool)
    assert result >= 0


def test_long_values_are_shortened() -> None:
    """Sentences stay short even if the value found is long."""
    assert len(show("x" * 1000)) <= 60
    assert show(None) == "nothing"
