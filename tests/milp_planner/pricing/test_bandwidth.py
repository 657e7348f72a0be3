"""Lookup bandwidth and hit ratio of options.

Lookup time by hand.

The law of the tiers over all shipped profiles, skews, optimizers and ratios.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from milp_planner.pricing import lookup, price
from milp_planner.pricing.enumeration import enumerations_of
from milp_planner.pricing.exchange import links_of
from milp_planner.pricing.job import Job, OptionColumns, job_of, option_columns
from milp_planner.pricing.law import bandwidth_of
from milp_planner.pricing.lookup import hits_of
from milp_planner.pricing.profile import Kernel, Profile, load_profile, profile_names
from milp_planner.pricing.runtimes.registry import by_runtime
from tests.milp_planner.pricing.build import cluster, cost, model

GIB = 2**30
DYN = {"kind": "dynamicemb"}


def job(profile: str, *tables: dict[str, object], **workload: object) -> Job:
    """A pricing job on one machine of eight ranks."""
    site = cluster(1, 8, profile=profile)
    return job_of(model(*tables, **workload), site, load_profile(profile), links_of(site))


def found(job: Job) -> dict[str, float]:
    """Bandwidth of every option of the only table, by name, bytes per second."""
    columns, names = columns_of(job)
    hits, values = hits_of(job, columns), np.empty(len(names))
    for runtime, at in by_runtime(columns):
        values[at] = bandwidth_of(runtime, job, columns.at(at), hits.at(at))
    return dict(zip(names, values.tolist(), strict=True))


def columns_of(job: Job) -> tuple[OptionColumns, tuple[str, ...]]:
    """Columns and names of the options of the only table."""
    (legal,) = enumerations_of(job.model, job.cluster)
    return option_columns(legal.choices, job.ranks, [0] * len(legal.choices)), legal.names


def test_torchrec_kernels() -> None:
    """fused: HBM; dense: half; uvm: link/10; uvm_caching: (0.3 HBM + 0.7 link)/10."""
    values = found(job("torchrec-default", {}))
    assert values["table_wise/HBM_ONLY"] == 897 * GIB
    assert values["data_parallel/HBM_ONLY"] == 897 * GIB / 2
    assert values["row_wise/HOST_ONLY"] == pytest.approx(3.2 * GIB)
    mixed = (0.3 * 897 + 0.7 * 32) / 10 * GIB
    assert values["row_wise/CACHING/0.3"] == pytest.approx(mixed)


def missing(*points: tuple[float, float]) -> dict[str, object]:
    """A dynamicemb table whose miss rate is known at some cache ratios."""
    curve = {"kind": "miss_rate", "points": [list(point) for point in points]}
    return {**DYN, "rows": 10 * 8192, "access": curve}


def test_a_tiers_time_is_its_path_and_its_misses() -> None:
    """a10 at hit ratio 0.8: 0.8 of the path's time and 0.2 of host memory's, both times ten."""
    values = found(job("a10", missing((0.3, 0.2), (1.0, 0.0))))

    def seconds(x_eff: float) -> float:
        return 10 / ((x_eff * 897 + (1 - x_eff) * 32) * GIB)

    assert values["row_wise/HBM_ONLY/roundrobin"] == pytest.approx(89.7 * GIB)
    assert 1 / values["row_wise/HOST_ONLY/roundrobin"] == pytest.approx(seconds(0.11))
    for mode, path in (("CACHING", 0.3102), ("HYBRID", 0.1162)):
        expected = 0.8 * seconds(path) + 0.2 * seconds(0.11)
        assert 1 / values[f"row_wise/{mode}/0.3/roundrobin"] == pytest.approx(expected)


def test_torcheasyrecs_rules_are_literal() -> None:
    """0.28 + 0.01 x and 0.11 + 0.01 x over ten, in the first commit 10 x and x; statistics replace
    both, even at ratio 1, in the first commit down to x."""

    def values(x_eff: dict[str, float], table: dict[str, object], rules: str) -> None:
        priced = found(job("h100", table, cost_model=rules))
        for name, each in x_eff.items():
            expected = (each * 3350 + (1 - each) * 64) / 10 * 1e9
            assert priced[f"row_wise/{name}/roundrobin"] == pytest.approx(expected), (rules, name)

    merged, first = "torcheasyrec", "torcheasyrec_first"
    values({"CACHING/0.3": 0.283, "HYBRID/0.3": 0.113, "HBM_ONLY": 1.0}, DYN, merged)
    values({"CACHING/0.3": 1.0, "HYBRID/0.3": 0.3, "HBM_ONLY": 1.0}, DYN, first)
    table = missing((0.3, 0.95), (0.5, 0.7), (1.0, 0.1))
    known = {"CACHING/0.3": 0.05, "HYBRID/0.3": 0.05, "CACHING/0.5": 0.3, "HBM_ONLY": 0.9}
    values(known, table, merged)
    values({"CACHING/0.3": 0.3, "HYBRID/0.3": 0.3, "CACHING/0.5": 0.5, "HBM_ONLY": 1.0}, table,
           first)  # fmt: skip


def test_batch_cover_is_cache_rows_over_distinct_rows() -> None:
    """A cache of 0.4 of the rows, in buckets half of them, over the distinct rows of a step."""
    site = cluster(1, 8, profile="h100")
    shipped = load_profile("h100").to_dict()
    curve = {"over": "batch_cover", "points": [[0.0, 0.1], [1.0, 0.2]], "origin": "made up"}
    profile = Profile.from_dict({**shipped, "caching": curve})
    made = model({**DYN, "rows": 8192 * 8, "pooling_factor": 8.0})
    work = job_of(made, site, profile, links_of(site))
    touched = float(work.traffic.distinct[0]) / (8192 * 8)
    columns, names = columns_of(work)
    cover = hits_of(work, columns).cover[names.index("row_wise/CACHING/0.4/roundrobin")]
    assert cover == pytest.approx(4 * 1024 / 8192 / touched)
    x_eff = np.interp(cover, [0, 1.0], [0.1, 0.2])
    value = found(work)["row_wise/CACHING/0.4/roundrobin"]
    assert value == pytest.approx((x_eff * 3350e9 + (1 - x_eff) * 64e9) / 1.95)


def test_prefetch_lets_a_cache_read_at_hbm_speed() -> None:
    """The misses are priced in their own phase."""
    values = found(job("torchrec-default", {}, prefetch_pipeline=True))
    assert values["table_wise/CACHING/0.1"] == 897 * GIB
    assert values["table_wise/HOST_ONLY"] == pytest.approx(3.2 * GIB)


def test_prefetch_spares_dynamicemb_the_misses_but_not_the_path() -> None:
    """As if every lookup hit: x_eff 0.1615 at any ratio on h100."""
    values = found(job("h100", DYN, prefetch_pipeline=True))
    path = (0.1615 * 3350e9 + 0.8385 * 64e9) / 1.95
    for ratio in ("0.1", "0.9"):
        assert values[f"row_wise/CACHING/{ratio}/roundrobin"] == pytest.approx(path)


def test_without_hbm_lookups_read_ddr() -> None:
    """A CPU-only cluster reads at DDR bandwidth, the dense kernel at half of it."""
    found = cost(price(model({}), cluster(1, 8, hbm=0)), "data_parallel/HOST_ONLY")
    ids, row = 512, 64 * 4
    dense = (8 * ids + 2 * ids * row) / (51 * GIB / 2) * 1e12
    assert found[0] == pytest.approx(dense, abs=1)


def test_lfu_tables_are_priced_as_lfu() -> None:
    """At the same ratio, eviction by frequency hits more often than eviction by recency."""
    zipf = {**DYN, "rows": 100_000, "access": {"kind": "zipf", "alpha": 1.0}}
    ratios = []
    for strategy in ("timestamp", "lfu"):
        work = job("a10", {**zipf, "score_strategy": strategy})
        columns, names = columns_of(work)
        at = names.index("row_wise/CACHING/0.1/roundrobin")
        ratios.append(hits_of(work, columns).ratio[at])
    assert ratios[0] + 0.02 < ratios[1]


def test_forward_is_bytes_over_bandwidth() -> None:
    """100 ids of 512 bytes, 25,600 bytes out: (800 + 51,200 + 25,600) bytes at 1 GB/s."""
    ids, out, row = np.array([100.0]), np.array([25_600.0]), np.array([512])
    found = lookup.forward_seconds(ids, out, row, np.array([False, True]), np.array([1e9]))
    assert found == pytest.approx([77_600e-9, 78_400e-9])


def test_backward_is_twice_forward_and_more_with_weights() -> None:
    """Factor 2, 3.1 if weighted; 2 · 1.2 with two copies of a row as state at 0.1 each."""
    kernel = Kernel(dynamicemb_state_multiple=0.1)
    weighted, state = np.array([False, True, False]), np.array([0.0, 0.0, 2.0])
    found = lookup.backward_seconds(np.ones(3), weighted, state, kernel)
    assert found == pytest.approx([2.0, 3.1, 2.4])


def test_narrow_rows_are_penalised() -> None:
    """1.75 below 64 columns, 1.15 below 128, none from there on; none at all if switched off."""
    columns = np.array([16, 63, 64, 127, 128, 512])
    found = lookup.narrow_penalty(columns, Kernel())
    assert found.tolist() == [1.75, 1.75, 1.15, 1.15, 1.0, 1.0]
    assert lookup.narrow_penalty(columns, Kernel(narrow_penalties=())).tolist() == [1.0] * 6


RATIOS = ["1/50", "0.1", "0.3", "0.5", "0.7", "0.9", "0.97"]


def access() -> st.SearchStrategy[dict[str, Any]]:
    """No statistics, Zipf's law, or any miss-rate curve."""
    zipf = st.builds(lambda a: {"kind": "zipf", "alpha": a}, st.floats(0.0, 3.0))
    rising = st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3).map(sorted)
    curve = rising.map(
        lambda m: {"kind": "miss_rate", "points": [[0.1, m[2]], [0.5, m[1]], [1.0, m[0]]]}
    )
    return st.one_of(st.just({"kind": "unknown"}), zipf, curve)


@pytest.mark.parametrize("profile", profile_names())
@pytest.mark.parametrize("kind", ["dynamicemb", "torchrec"])
@settings(max_examples=12)
@given(
    known=access(),
    optimizer=st.sampled_from(["sgd", "adam", "rowwise_adagrad"]),
    score=st.sampled_from(["timestamp", "lfu"]),
)
def test_a_tier_is_between_hbm_and_host(
    profile: str, kind: str, known: dict[str, Any], optimizer: str, score: str
) -> None:
    """Every tiered lookup costs at least HBM_ONLY and at most HOST_ONLY, forward and backward."""
    times = lookups(profile, kind, known, optimizer, score)
    low, high = times["HBM_ONLY"], times["HOST_ONLY"]
    for name, seconds in times.items():
        assert low <= seconds <= high + 2, name  # picoseconds, rounded


@pytest.mark.parametrize("profile", profile_names())
@pytest.mark.parametrize("kind", ["dynamicemb", "torchrec"])
@given(misses=st.lists(st.floats(0.0, 1.0), min_size=2, max_size=7, unique=True))
@settings(max_examples=12)
def test_more_hits_are_never_dearer(profile: str, kind: str, misses: list[float]) -> None:
    """As the hit ratio rises, the time falls or stays."""
    ratios = [round(0.1 + 0.1 * i, 1) for i in range(len(misses))]
    falling = sorted(misses, reverse=True)
    known = {"kind": "miss_rate", "points": [list(p) for p in zip(ratios, falling, strict=True)]}
    grid = [str(ratio) for ratio in ratios]
    times = lookups(profile, kind, known, "sgd", "timestamp", grid)
    for mode in ("CACHING", "HYBRID")[: 2 if kind == "dynamicemb" else 1]:
        named = [t for name, t in times.items() if name.startswith(mode)]
        assert len(named) == len(misses)
        assert named == sorted(named, reverse=True)


def lookups(
    profile: str,
    kind: str,
    known: dict[str, Any],
    optimizer: str,
    score: str,
    ratios: list[str] = RATIOS,
) -> dict[str, int]:
    """Forward and backward compute of one GPU's options by mode and ratio, picoseconds."""
    table: dict[str, Any] = {
        "rows": 2_000_000, "dim": 128, "kind": kind, "optimizer": optimizer, "access": known,
        "pooling_factor": 10, "constraints": {"cache_ratios": ratios},
    }  # fmt: skip
    if kind == "dynamicemb":
        table["score_strategy"] = score
    options = price(model(table), cluster(1, 1, profile=profile))
    cost = options.entries.cost[options.entries.first[:-1]]
    sharding = "row_wise" if kind == "dynamicemb" else "table_wise"
    return {
        name.removeprefix(f"{sharding}/").removesuffix("/roundrobin"): phases[0] + phases[2]
        for name, phases in zip(options.names, cost.tolist(), strict=True)
        if name.startswith(sharding) and "beside" not in name
    }
