"""Options of dynamicemb tables beside TorchRec's: which exist, what they hold and cost.

Bytes and bandwidth of dynamicemb tables: published vectors and hand-computed ones.
"""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.distributed.types import CacheAlgorithm, CacheParams
from torchrec.types import DataType

from milp_planner.errors import BadInput
from milp_planner.integrations.torchrec.dynamicemb import DynamicEmbEnumerator
from milp_planner.integrations.torchrec.dynamicemb.enumerator import (
    Rows,
    bandwidth,
    counter_bytes,
    efficiency,
    rows_of,
    table_bytes,
    torcheasyrec_efficiency,
)
from milp_planner.integrations.torchrec.dynamicemb.marks import fusion, label, mode_of

from ..models import Case
from .standins import DynamicEmbTableOptions, KVCounter, Misses, dynamic, mixed_case

SHAPES = {"plain": (4000, 64), "hot": (100_000, 64), "cold": (1_000_000, 64)}


def enumerated(case: Case, **more: Any) -> dict[str, list[Any]]:
    """Options by table."""
    enumerator = DynamicEmbEnumerator(case.topology, case.batch_size, case.constraints, **more)
    found: dict[str, list[Any]] = {}
    for option in enumerator.enumerate(case.module, case.sharders):
        found.setdefault(option.name, []).append(option)
    return found


def case(**constraints: ParameterConstraints) -> Case:
    """Three tables; unless told otherwise, the last two are dynamicemb's."""
    return mixed_case(SHAPES, {"hot": dynamic(), "cold": dynamic(), **constraints}, hbm=2**30)


def test_twenty_options_as_torcheasyrec() -> None:
    """Both modes at ten ratios, one shard per rank, in TorchEasyRec's own fields."""
    options = enumerated(case())["cold"]
    tried = [(o.dynamicemb_options.caching, o.cache_params.load_factor) for o in options]
    assert tried == [(c, t / 10) for c in (False, True) for t in range(1, 11)]
    for option in options:
        assert option.use_dynamicemb
        assert (option.sharding_type, option.compute_kernel) == ("row_wise", "customized_kernel")
        assert len(option.shards) == 2
    kept = {id(option.dynamicemb_options) for option in options}
    assert len(kept) == 20, "each option owns its dynamicemb options"


def test_ordinary_tables_are_torchrecs() -> None:
    """Other tables have exactly the options of TorchRec's own enumerator."""
    found = case(hot=ParameterConstraints(), cold=ParameterConstraints())
    theirs = found.enumerator().enumerate(found.module, found.sharders)
    ours = enumerated(case())["plain"]
    wanted = [o for o in theirs if o.name == "plain"]
    assert sorted(map(str, ours)) == sorted(map(str, wanted))


def test_a_load_factor_fixes_the_ratio() -> None:
    """As in TorchEasyRec, two options remain, also where its build_dynamicemb_constraints makes a
    tuple of one, which is no sweep; two are an error. A ratio of 0 gives HOST_ONLY."""
    fixed = dynamic(ratio=0.3)
    found = enumerated(case(hot=fixed), ratios=[Fraction(0), Fraction(1)])
    assert [label(o) for o in found["hot"]] == ["row_wise/HYBRID/0.3", "row_wise/CACHING/0.3"]
    wrapped: Any = replace(fixed, cache_params=(fixed.cache_params,))
    again = enumerated(case(hot=wrapped))["hot"]
    assert [label(o) for o in again] == [label(o) for o in found["hot"]]
    wrapped.cache_params = (CacheParams(), CacheParams())
    with pytest.raises(BadInput, match=r"'hot': cache_params: found tuple; allowed: CacheParams"):
        enumerated(case(hot=wrapped))
    assert [mode_of(o) for o in found["cold"]] == ["HOST_ONLY", "HBM_ONLY", "HBM_ONLY"]


@pytest.mark.parametrize("model", ["runtime", "torcheasyrec"])
def test_bytes_are_the_tables_and_torchrecs_buffers(model: Any) -> None:
    """HBM without the table's bytes is the same for every option: input and output buffers."""
    counted = dynamic(admission_counter=KVCounter(5000, 64))
    options = enumerated(case(cold=counted), storage=model)["cold"]
    left = set()
    for option in options:
        ratio = Fraction(option.cache_params.load_factor).limit_denominator(10)
        inner = option.dynamicemb_options
        hbm, ddr = table_bytes(rows_of(option), inner, ratio, inner.caching, model)
        assert [s.storage.ddr for s in option.shards] == [ddr] * 2
        left |= {s.storage.hbm - hbm for s in option.shards}
    # 2 ranks × 256 samples × 1 id over 2 ranks × 8 bytes, and 512 outputs of 64 floats
    assert left == {256 * 8 + 512 * 64 * 4}


def test_times_are_torchrecs_formula_at_the_modes_bandwidth() -> None:
    """Forward compute scales with the mode's bandwidth; forward exchange does not depend on it."""
    found = case()
    board = found.topology
    options = enumerated(found)["cold"]
    for option in options:
        perf = option.shards[0].perf
        whole = options[9].shards[0].perf
        ratio = Fraction(option.cache_params.load_factor).limit_denominator(10)
        share = efficiency(ratio, option.dynamicemb_options.caching)
        mixed = share * board.hbm_mem_bw + (1 - share) * board.hbm_to_ddr_mem_bw
        assert perf.fwd_compute == pytest.approx(whole.fwd_compute * board.hbm_mem_bw / mixed)
        assert perf.fwd_comms == whole.fwd_comms
        assert perf.bwd_compute == pytest.approx(2 * perf.fwd_compute)


def test_every_field_of_cache_params_survives() -> None:
    """Statistics, algorithm, reserved memory and precision reach every option and its price."""
    params = CacheParams(
        algorithm=CacheAlgorithm.LFU, reserved_memory=1.5, precision=DataType.FP16,
        prefetch_pipeline=True, stats=Misses(0.01),
    )  # fmt: skip
    known, plain = dynamic(), case()
    known.cache_params = params
    options, others = enumerated(case(cold=known))["cold"], enumerated(plain)["cold"]
    assert len(options) == 20
    for option, other in zip(options, others, strict=True):
        kept = replace(option.cache_params, load_factor=None)
        assert kept == params and kept.stats is params.stats
        cheaper = option.shards[0].perf.fwd_compute < other.shards[0].perf.fwd_compute
        assert cheaper == (option.cache_params.load_factor < 0.99)


def test_tables_fuse_by_their_grouped_key() -> None:
    """Equal keys share a group; another strategy, dim or flag makes another group."""
    found = enumerated(
        mixed_case(
            {"a": (1000, 64), "b": (9000, 64), "lfu": (1000, 64), "wide": (1000, 128)},
            {
                "a": dynamic(), "b": dynamic(), "wide": dynamic(),
                "lfu": dynamic(score_strategy="LFU"),
            },
            hbm=2**30,
        )
    )  # fmt: skip
    groups = {name: [fusion(o)[0] for o in options] for name, options in found.items()}
    assert groups["a"] == groups["b"]
    assert len({groups[n][0] for n in groups}) == 3
    assert groups["a"][0] != groups["a"][-1], "caching is part of the key"
    levels = [fusion(o)[1] for o in found["a"][:10]]
    assert levels == [100_000 * tenth for tenth in range(1, 11)]


def test_bad_ratios_and_sharders_are_sentences() -> None:
    """Ratios lie between 0 and 1; a sharder must offer row-wise."""
    with pytest.raises(BadInput, match="from 0 to 1"):
        enumerated(case(), ratios=[Fraction(3, 2)])

    class OnlyTables(EmbeddingBagCollectionSharder):
        def sharding_types(self, compute_device_type: str) -> list[str]:
            return ["table_wise"]

    narrow = case()
    narrow.sharders = [OnlyTables()]
    with pytest.raises(RuntimeError, match=r"No available sharding type"):
        enumerated(narrow)


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
    """1000 rows of 64 floats: 1024 slots; half in one bucket of 1024, and the bytes beside them."""
    options = DynamicEmbTableOptions()
    held = Rows(1000, 64, 4, "none")
    hbm, ddr = table_bytes(held, options, Fraction(1, 2), False, "runtime")
    assert ddr == 512 * 256
    assert hbm == 1024 * 256 + 21 * (1024 + 512) + 4 * (1 + 4)
    whole, none = table_bytes(held, options, Fraction(1), True, "runtime")
    assert (whole, none) == (1024 * 256 + 21 * 1024 + 4 * 8, 0)
    options.score_strategy = ("TIMESTAMP", "LFU")  # two words a key
    assert table_bytes(held, options, Fraction(1), True, "runtime")[0] == whole + 8 * 1024


def test_an_external_store_takes_the_host_tiers_place() -> None:
    """A cache of 512 slots in a bucket of 1024 and 3 more, and its keys, are all that is left; a
    table of one tier in the store takes nothing, and HYBRID does not use it."""
    held = Rows(1000, 64, 4, "none")
    options = DynamicEmbTableOptions(external_storage="ps")
    for ratio, caching, found in (
        (Fraction(1, 2), True, (4096 * (256 + 21) + 4 * 4, 0)),
        (Fraction(0), False, (0, 0)),
    ):
        assert table_bytes(held, options, ratio, caching, "runtime") == found
    for ratio, caching in ((Fraction(1, 2), False), (Fraction(1), True)):
        plain = table_bytes(held, DynamicEmbTableOptions(), ratio, caching, "runtime")
        assert table_bytes(held, options, ratio, caching, "runtime") == plain


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
    """A tenth of the mixture; all of HBM at ratio 1; at one half, the mean of path and host."""
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
