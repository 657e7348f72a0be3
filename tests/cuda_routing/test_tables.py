"""Constants of the compiled paths: saturation, multipliers and boundary rows."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cuda_routing.features import make_features
from cuda_routing.tables import M64, magic, rule_table


@given(
    st.integers(0, 2**64 - 1),
    st.one_of(st.integers(1, 2**63 - 1), st.sampled_from([1, 2, 3, 7, 2**32, 2**63 - 1])),
)
def test_barrett_quotient_is_at_most_one_short(u: int, divisor: int) -> None:
    """The multiplier's quotient is exact or one too small, for every u below 2**64."""
    assert u // divisor - (u * magic(divisor) >> 64) in (0, 1)


def test_table_by_hand() -> None:
    """Block 10 on 3 ranks ends at key 29; a huge block saturates; roundrobin has no block."""
    features = make_features(3, 3, 3, [0, 0, 1], block_sizes=[10, 2**63 - 1, 5])
    table, edges = rule_table(features)
    assert table[0].tolist() == [0, 10, 29, M64 // 10, 0]
    assert int(table[1, 2]) == M64
    assert table[2].tolist() == [1, 0, 0, 0, 0]
    assert edges.shape == (0, 4)


def test_boundaries_get_rows() -> None:
    """Features with custom boundaries point one past their row of the boundary table."""
    features = make_features(3, 3, 2, [0, 1, 0], boundaries=[[0, 4, 9], None, [0, 1, 2]])
    table, edges = rule_table(features)
    assert table[:, 4].tolist() == [1, 0, 2]
    np.testing.assert_array_equal(edges, [[0, 4, 9], [0, 1, 2]])
