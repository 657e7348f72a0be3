"""Bytes and bandwidth of dynamicemb tables: published vectors and hand-computed ones."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from milp_planner.integrations.torchrec.dynamicemb.enumerator import (
    Rows,
    bandwidth,
    counter_bytes,
    efficiency,
    table_bytes,
    torcheasyrec_efficiency,
)

from .standins import DynamicEmbTableOptions, KVCounter, Misses


@pytest.mark.parametrize(
    ("held", "ratio", "hbm", "hybrid", "caching"),
    [
        (Rows(1024, 64, 4, "none"), Fraction(1, 2), 148_512, 131_072, 262_144),
        (
            Rows(12_500_000, 128, 4, "adam"), Fraction(3, 10),
            5_972_890_625, 13_440_000_000, 19_200_000_000,
        ),
    ],
)  # fmt: skip
def test_torcheasyrecs_vectors(
    held: Rows, ratio: Fraction, hbm: int, hybrid: int, caching: int
) -> None:
    """Both modes take the same HBM; the host holds the rest, or everything."""
    options = DynamicEmbTableOptions()
    assert table_bytes(held, options, ratio, False, "torcheasyrec") == (hbm, hybrid)
    assert table_bytes(held, options, ratio, True, "torcheasyrec") == (hbm, caching)


def test_runtime_by_hand() -> None:
    """1000 rows of 64 floats: 1024 slots; half of them in one bucket of 1024, and the bytes beside
    them."""
    options = DynamicEmbTableOptions()
    held = Rows(1000, 64, 4, "none")
    hbm, ddr = table_bytes(held, options, Fraction(1, 2), False, "runtime")
    assert ddr == 512 * 256
    assert hbm == 1024 * 256 + 21 * (1024 + 512) + 4 * (1 + 4)
    whole, none = table_bytes(held, options, Fraction(1), True, "runtime")
    assert (whole, none) == (1024 * 256 + 21 * 1024 + 4 * 8, 0)
    options.score_strategy = ("TIMESTAMP", "LFU")  # two words a key
    assert table_bytes(held, options, Fraction(1), True, "runtime")[0] == whole + 8 * 1024


def test_admission_counter_reads_its_own_bucket() -> None:
    """17 bytes per slot and 4 per bucket, with the counter's bucket size and not the table's."""
    options = DynamicEmbTableOptions(bucket_capacity=128)
    assert counter_bytes(options) == 0
    for bucket in (64, 1024):
        options.admission_counter = KVCounter(1_000_000, bucket)
        assert counter_bytes(options) == math.ceil(1_000_000 * (17 + Fraction(4, bucket)))
    plain = table_bytes(
        Rows(64, 4, 4, "none"), DynamicEmbTableOptions(), Fraction(1), False, "runtime"
    )
    counted = table_bytes(Rows(64, 4, 4, "none"), options, Fraction(1), False, "runtime")
    assert counted[0] - plain[0] == counter_bytes(options)


def test_bandwidth_of_a_mode() -> None:
    """A tenth of the mixture; all of HBM at ratio 1; at one half, the mean time of path and
    host."""
    assert bandwidth(efficiency(Fraction(1), True), 900.0, 30.0) == 90.0
    assert bandwidth(0.285, 900.0, 30.0) == pytest.approx((0.285 * 900 + 0.715 * 30) / 10)
    for caching, path in ((True, 0.3102), (False, 0.1162)):
        rates = [x * 897 + (1 - x) * 32 for x in (0.11, path)]
        mean = 2 / sum(1 / rate for rate in rates)
        found = efficiency(Fraction(1, 2), caching)
        assert found == pytest.approx((mean - 32) / (897 - 32))


def test_statistics_decide_the_hit_ratio() -> None:
    """1 − expected miss rate replaces the ratio; TorchEasyRec's rule uses it as x_eff."""
    stats = Misses(0.2)
    half = efficiency(Fraction(4, 5), True), efficiency(Fraction(1, 10), True, stats)
    assert half[0] == pytest.approx(half[1])
    assert torcheasyrec_efficiency(Fraction(1, 10), True, stats) == pytest.approx(0.8)
    assert torcheasyrec_efficiency(Fraction(1), False, stats) == pytest.approx(0.8)
    assert torcheasyrec_efficiency(Fraction(1, 2), True) == pytest.approx(0.285)
    assert torcheasyrec_efficiency(Fraction(1, 2), False) == pytest.approx(0.115)
    assert torcheasyrec_efficiency(Fraction(1), False) == 1.0
