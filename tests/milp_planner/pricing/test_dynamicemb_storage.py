"""dynamicemb storage: the published vectors, and the runtime's metadata."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from milp_planner.pricing import storage as emb
from milp_planner.pricing.runtimes import torcheasyrec
from tests.milp_planner.pricing.build import column, held, priced


def tiers(kind: str, rows: int, row_bytes: int, ratio: Fraction, caching: bool) -> list[int]:
    """HBM, DDR and HBM for values of one shard with buckets of 128."""
    formula = torcheasyrec.torcheasyrec_tiers if kind == "torcheasyrec" else emb.runtime_tiers
    pair = (column(ratio.numerator), column(ratio.denominator))
    found = formula(column(rows), column(row_bytes), column(128), pair, np.array([caching]))
    return [int(part[0]) for part in found]


@pytest.mark.parametrize(
    ("shape", "tenths", "expected"),
    [
        ((1024, 64, "sgd"), 5, (148512, 131072, 131072, 262144)),
        ((12_500_000, 128, "adam"), 3, (5972890625, 5760000000, 13440000000, 19200000000)),
        ((4_000_000, 128, "adam"), 1, (682525000, 614400000, 5529600000, 6144000000)),
    ],
)
def test_published_vectors(
    shape: tuple[int, int, str], tenths: int, expected: tuple[int, int, int, int]
) -> None:
    """The planner's published figures to the byte (the last without a float error of one)."""
    rows, dim, optimizer = shape
    hbm, values, hybrid, caching = expected
    row = torcheasyrec.planner_value_bytes(dim, 4, optimizer)
    ratio = Fraction(tenths, 10)
    assert tiers("torcheasyrec", rows, row, ratio, False) == [hbm, hybrid, values]
    assert tiers("torcheasyrec", rows, row, ratio, True) == [hbm, caching, values]


@given(st.integers(1, 10**9), st.integers(1, 64), st.integers(1, 64), st.integers(1, 9))
def test_slots_of_hbm(rows: int, ranks: int, sixteens: int, tenths: int) -> None:
    """x of a rank's slots, rounded up to a multiple of 1024, over the rows of the table."""
    bucket, ratio = 16 * sixteens, Fraction(tenths, 10)
    room = math.ceil(Fraction(rows, ranks) / bucket) * bucket
    slots = math.ceil(room * ratio / 1024) * 1024
    found = emb.hbm_slots(-(-rows // ranks), bucket, (tenths, 10))
    assert found == slots
    held = emb.held_ratio(rows, ranks, bucket, (tenths, 10))
    assert held == pytest.approx(min(slots * ranks / rows, 1))
    assert tenths / 10 <= held <= 1


@given(
    st.integers(1, 10**9), st.integers(1, 512), st.integers(0, 100), st.integers(1, 100),
    st.booleans(),
)  # fmt: skip
def test_torcheasyrec_is_its_formula(
    rows: int, sixteens: int, over: int, under: int, caching: bool
) -> None:
    """HBM = ceil(a·(vb·x + 17 + 4/128)) and DDR = ceil(a·vb·(1 − x)) or a·vb, as fractions."""
    ratio, row = Fraction(min(over, under), under), 16 * sixteens
    a = max(16, -(-rows // 16) * 16)
    ddr = a * row if caching else math.ceil(a * row * (1 - ratio))
    expected = [
        math.ceil(a * (row * ratio + 17 + Fraction(4, 128))),
        ddr,
        math.ceil(a * row * ratio),
    ]
    assert tiers("torcheasyrec", rows, row, ratio, caching) == expected


@pytest.mark.parametrize(("caching", "megabytes"), [(False, 262.8), (True, 341.7)])
def test_runtime_metadata_is_what_was_read_in_the_runtime(caching: bool, megabytes: float) -> None:
    """12.5M rows at x = 0.3 hold 262.8 MB (HYBRID) or 341.7 MB (CACHING) of metadata in HBM."""
    hbm, _, values = tiers("runtime", 12_500_000, 1536, Fraction(3, 10), caching)
    assert (hbm - values) / 1e6 == pytest.approx(megabytes, abs=0.1)


def test_runtime_small_shard_by_hand() -> None:
    """1,000 rows at x = 1/2: 1,024 slots; HYBRID 1,024 + 512, CACHING 1,024 + 3,072 + 1,024."""
    row = 256
    hbm, ddr, values = tiers("runtime", 1000, row, Fraction(1, 2), False)
    assert (ddr, values) == (512 * row, 1024 * row)
    assert hbm == values + 21 * (1024 + 512) + 4 * 1 + 4 * 4
    hbm, ddr, values = tiers("runtime", 1000, row, Fraction(1, 2), True)
    assert (ddr, values) == (1024 * row, 4096 * row)
    assert hbm == values + 21 * (4096 + 1024) + 4 * 4 + 4 * 8


def test_two_score_words_by_hand() -> None:
    """A compound score adds 8 bytes to each of the 1,024 + 512 slots of HYBRID, and to no value."""
    sizes = column(1000), column(256), column(128), (column(1), column(2)), np.array([False])
    one, two = (emb.runtime_tiers(*sizes, score_words=words) for words in (1, 2))
    assert two.hbm - one.hbm == 8 * (1024 + 512)
    assert (two.ddr, two.values_hbm) == (one.ddr, one.values_hbm)


def test_a_models_compound_scores_are_charged() -> None:
    """HBM_ONLY on one rank: 1,024 slots take 8 bytes more, in either order of the words, except
    where TorchEasyRec's formula counts."""

    def metadata(strategy: str, **workload: str) -> int:
        table = {"kind": "dynamicemb", "score_strategy": strategy}
        return held(priced(table, ranks=1, **workload), "row_wise/HBM_ONLY/roundrobin")["metadata"]

    for compound in ("timestamp+lfu", "lfu+timestamp"):
        assert metadata(compound) - metadata("lfu") == 8 * 1024
        torcheasyrec = {"storage_model": "torcheasyrec"}
        assert metadata(compound, **torcheasyrec) == metadata("lfu", **torcheasyrec)


def test_runtime_single_tiers_by_hand() -> None:
    """HBM_ONLY has no host tier; HOST_ONLY keeps all metadata, but no values, in HBM."""
    row = 256
    assert tiers("runtime", 1000, row, Fraction(1), False) == [
        1024 * row + 21 * 1024 + 32,
        0,
        1024 * row,
    ]
    assert tiers("runtime", 1000, row, Fraction(0), False) == [21 * 1024 + 32, 1024 * row, 0]


@given(st.integers(1, 10**8), st.integers(1, 99), st.booleans())
def test_runtime_never_needs_less_hbm_than_planned(rows: int, over: int, caching: bool) -> None:
    """What TorchEasyRec's formula leaves out only ever makes it too low."""
    ratio = Fraction(over, 100)
    planned = tiers("torcheasyrec", rows, 512, ratio, caching)
    assert tiers("runtime", rows, 512, ratio, caching)[0] > planned[0]


@pytest.mark.parametrize(
    ("optimizer", "planned", "runtime"),
    [
        ("none", 512, 512), ("sgd", 512, 512), ("adam", 1536, 1536), ("adagrad", 1024, 1024),
        ("rowwise_adagrad", 528, 528), ("other", 1024, 1024),
    ],
)  # fmt: skip
def test_row_bytes(optimizer: str, planned: int, runtime: int) -> None:
    """A row of 128 floats with its state: TorchEasyRec's figure and the runtime's."""
    assert torcheasyrec.planner_value_bytes(128, 4, optimizer) == planned
    assert emb.runtime_value_bytes(128, 4, optimizer) == runtime


def test_values_of_all_slots() -> None:
    """The ratio times the bytes of all slots (rows in whole buckets) with state, rounded up."""
    row = emb.runtime_value_bytes(3, 4, "rowwise_adagrad")  # roundup16(12 + 16)
    assert emb.hbm_for_values(130, 128, row, Fraction(1)) == 256 * 32
    assert emb.hbm_for_values(130, 128, row, Fraction(1, 3)) == math.ceil(256 * 32 / 3)
