"""The law of the tiers over all shipped profiles, skews, optimizers and ratios."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from milp_planner.pricing import price
from milp_planner.pricing.profile import profile_names
from tests.milp_planner.pricing.build import cluster, model

RATIOS = ["1/50", "0.1", "0.3", "0.5", "0.7", "0.9", "0.97"]


def access() -> st.SearchStrategy[dict[str, Any]]:
    """No statistics, Zipf's law, or any miss-rate curve."""
    zipf = st.builds(lambda a: {"kind": "zipf", "alpha": a}, st.floats(0.0, 3.0))
    falling = st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3).map(
        lambda misses: sorted(misses, reverse=True)
    )
    curve = falling.map(
        lambda m: {"kind": "miss_rate", "points": [[0.1, m[0]], [0.5, m[1]], [1.0, m[2]]]}
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
    found = {}
    for name, phases in zip(options.names, cost.tolist(), strict=True):
        if name.startswith(sharding) and "beside" not in name:
            found[name.removeprefix(f"{sharding}/").removesuffix("/roundrobin")] = (
                phases[0] + phases[2]
            )
    return found
