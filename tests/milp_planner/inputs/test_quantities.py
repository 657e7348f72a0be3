"""Sizes, counts, ratios and bandwidths as people write them."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from milp_planner.inputs.quantities import (
    SIZE_UNITS,
    parse_bandwidth,
    parse_bytes,
    parse_count,
    parse_percent,
    parse_ratio,
    show,
)

PARSERS = (parse_bytes, parse_count, parse_bandwidth, parse_ratio, parse_percent)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("80GiB", 85_899_345_920),
        ("1.5TB", 1_500_000_000_000),
        ("1.5 TiB", 1_649_267_441_664),
        ("0B", 0),
        ("1kB", 1000),
        ("1KiB", 1024),
        ("2_000_000 B", 2_000_000),
        ("0.5KiB", 512),
        (4096, 4096),
    ],
)
def test_sizes_by_hand(text: object, expected: int) -> None:
    """Sizes computed by hand: decimal units are powers of 1000, binary ones of 1024."""
    assert parse_bytes(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2M", 2_000_000),
        ("2_000_000", 2_000_000),
        ("12.5M", 12_500_000),
        ("1B", 10**9),
        ("1G", 10**9),
        (7, 7),
    ],
)
def test_counts_by_hand(text: object, expected: int) -> None:
    """Counts computed by hand."""
    assert parse_count(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("450GB/s", 450 * 10**9), ("12.5GiB/s", 13_421_772_800)]
)
def test_bandwidths_by_hand(text: str, expected: int) -> None:
    """Bandwidths computed by hand."""
    assert parse_bandwidth(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1/3", Fraction(1, 3)),
        ("0.35", Fraction(7, 20)),
        ("35%", Fraction(7, 20)),
        (0.1, Fraction(1, 10)),
        (0.07, Fraction(7, 100)),
        (1, Fraction(1)),
        ("12.5%", Fraction(1, 8)),
    ],
)
def test_ratios_are_exact(text: object, expected: Fraction) -> None:
    """A ratio is the decimal that was written, not the binary float nearest to it."""
    assert parse_ratio(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [(15, Fraction(15)), ("15%", Fraction(15)), (12.5, Fraction(25, 2))]
)
def test_percentages(text: object, expected: Fraction) -> None:
    """A percentage means the same with and without its sign."""
    assert parse_percent(text) == expected


@pytest.mark.parametrize(
    "text", ["80GB", "80gib", "80 G", "80Gb", "GiB", "-1GiB", "1e3GiB", "1,5TB"]
)
def test_unit_mistakes_in_sizes(text: str) -> None:
    """Only the exact units pass; 80GB is one of them and differs from 80GiB."""
    if text == "80GB":
        assert parse_bytes(text) == 80 * 10**9
    else:
        with pytest.raises(ValueError, match="allowed: a size such as 80GiB"):
            parse_bytes(text)


def test_nearest_unit_is_named() -> None:
    """For a unit in the wrong case, the error names the right one."""
    with pytest.raises(ValueError, match=r"did you mean the unit GiB\?"):
        parse_bytes("80gib")


def test_missing_unit_is_named() -> None:
    """Text without a unit is refused and the sentence says why."""
    with pytest.raises(ValueError, match="the unit is missing"):
        parse_bytes("80")


def test_part_of_a_byte_is_refused() -> None:
    """A size is never rounded."""
    with pytest.raises(ValueError, match="not a whole number"):
        parse_bytes("1.0000000001GiB")
    with pytest.raises(ValueError, match="not a whole number"):
        parse_count("1.0005k")


@pytest.mark.parametrize("value", [450, "450", "450GB", "450Gb/s", 4.5, None])
def test_bandwidth_needs_its_unit(value: object) -> None:
    """A bandwidth without bytes per second is refused."""
    with pytest.raises(ValueError, match="a bandwidth with its unit"):
        parse_bandwidth(value)


def test_size_limit() -> None:
    """Sizes beyond what JSON carries exactly are refused."""
    assert parse_bytes(2**53 - 1) == 2**53 - 1
    with pytest.raises(ValueError, match="below 2"):
        parse_bytes(2**53)


@pytest.mark.parametrize("value", ["1/128", 0.123, "0.001"])
def test_ratios_finer_than_hundredths_are_refused(value: object) -> None:
    """The finest grid is hundredths."""
    with pytest.raises(ValueError, match="finer than 1/100"):
        parse_ratio(value)


def test_division_by_zero_is_a_sentence() -> None:
    """1/0 is refused like any other text that is not a ratio."""
    with pytest.raises(ValueError, match="division by zero"):
        parse_ratio("1/0")


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
