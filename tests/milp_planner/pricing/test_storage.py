"""TorchRec storage, buffers and the admission counter, against exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from milp_planner.pricing import storage


def column(value: int) -> np.ndarray:
    """One value as an array."""
    return np.array([value], dtype=np.int64)


def test_admission_counter_vector() -> None:
    """A million slots take 17,003,907 bytes, the published figure."""
    assert storage.admission_counter(1_000_000) == 17_003_907


@given(st.integers(1, 10**9))
def test_admission_counter_is_the_formula(capacity: int) -> None:
    """ceil(align16(capacity) · (17 + 4/bucket)), in exact fractions; buckets of 1024 by default."""
    slots = -(-capacity // 16) * 16
    for bucket in (1024, 128, 48):
        counted = storage.admission_counter(capacity, bucket)
        assert counted == math.ceil(slots * (17 + Fraction(4, bucket)))
    assert storage.admission_counter(capacity) == storage.admission_counter(capacity, 1024)


@pytest.mark.parametrize(
    ("optimizer", "expected"),
    [("none", 0), ("sgd", 0), ("adam", 2), ("adagrad", 1), ("other", 1)],
)
def test_state_multiples(optimizer: str, expected: int) -> None:
    """State as a multiple of the weights, as TorchRec counts it."""
    assert storage.state_multiple(optimizer, 64) == expected


def test_rowwise_adagrad_keeps_one_number_a_row() -> None:
    """Its multiple is 1/dim, so a row of 64 floats keeps 4 bytes of state."""
    weights = storage.torchrec_weights(column(1000), column(64), column(4))
    multiple = storage.state_multiple("rowwise_adagrad", 64)
    state = storage.torchrec_state(
        weights, column(multiple.numerator), column(multiple.denominator)
    )
    assert int(state[0]) == 4000


@given(
    st.integers(1, 10**9),
    st.integers(1, 2048),
    st.integers(1, 128),
    st.integers(1, 8),
    st.integers(0, 100),
    st.sampled_from([1, 2, 4]),
)
def test_cache_is_its_share_of_the_tables_cache(
    rows: int, dim: int, parts: int, cuts: int, over: int, element: int
) -> None:
    """ceil(round(table · c) · share), 4 bytes per row and 16 per slot, in exact fractions."""
    shard_rows, shard_columns = -(-rows // parts), -(-dim // cuts)
    shape, table = (column(shard_rows), column(shard_columns)), (column(rows), column(dim))
    part, index = storage.torchrec_cache(shape, table, column(element), (column(over), column(100)))
    ratio = Fraction(over, 100)
    cached = math.floor(rows * dim * element * ratio + Fraction(1, 2))
    share = Fraction(shard_rows * shard_columns, rows * dim)
    assert int(part[0]) == math.ceil(cached * share)
    assert int(index[0]) == 4 * shard_rows + math.ceil(16 * shard_rows * ratio)


@given(st.integers(0, 2**52), st.integers(0, 2**40), st.integers(1, 2**40))
def test_ceil_div_product_survives_products_beyond_64_bits(
    value: int, numerator: int, denominator: int
) -> None:
    """It is exact even if value · numerator overflows."""
    numerator = min(numerator, denominator)
    found = storage.ceil_div_product(column(value), column(numerator), column(denominator))
    assert int(found[0]) == -(-value * numerator // denominator)


def test_buffers_round_up() -> None:
    """Fractional mean ids give whole bytes, rounded up."""
    assert storage.input_bytes(np.array([10.01])).tolist() == [81]
    output = storage.output_bytes(np.array([1.001]), column(64), column(4))
    assert output.tolist() == [257]
