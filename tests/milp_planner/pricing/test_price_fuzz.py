"""Any legal model on any small cluster becomes a valid Instance, or is refused in a sentence."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formulations.instance.validate import validate
from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster
from milp_planner.plans.compile import compile_instance
from milp_planner.pricing import price
from milp_planner.pricing.options import MODES, SHARDING_TYPES
from tests.milp_planner.pricing.build import cluster, model, uneven_cluster

RATIOS = st.sampled_from(["0.1", "1/3", "0.35", "0.99"])
DIST = st.sampled_from(["continuous", "roundrobin", "hash_roundrobin", "hash_independent"])
ACCESS = st.sampled_from(
    [
        "unknown",
        {"kind": "zipf", "alpha": 0.0},
        {"kind": "zipf", "alpha": 3.0, "hot_ids": [5, 0, 2]},
        {"kind": "histogram", "bins": [[0.1, 0.9], [0.9, 0.1]]},
        {"kind": "top_ids", "ids": [{"share": 1.0}]},
        {"kind": "top_ids", "ids": [{"share": 0.5, "id": 3}, {"share": 0.2}]},
        {"kind": "miss_rate", "points": [[0.5, 0.2]], "working_rows": 3},
        {"kind": "miss_rate", "points": [[0.2, 1.0], [1.0, 1.0]]},
        {"kind": "unknown", "unique_fraction": 0.01},
        {"kind": "unknown", "measured_skew": {"max_over_mean": 2.0, "ranks": 2}},
    ]
)


@st.composite
def limits(draw: st.DrawFn, dim: int) -> dict[str, Any]:
    """Constraints that may or may not leave an option."""
    found: dict[str, Any] = {}
    if draw(st.booleans()):
        found["modes"] = draw(st.lists(st.sampled_from(MODES), min_size=1, unique=True))
    if draw(st.booleans()):
        types = st.lists(st.sampled_from(SHARDING_TYPES), min_size=1, unique=True)
        found["sharding_types"] = draw(types)
    if draw(st.booleans()):
        found["column_widths"] = draw(
            st.lists(st.sampled_from([*range(4, dim, 4), dim]), min_size=1)
        )
    if draw(st.booleans()):
        found["ranks"] = draw(st.lists(st.integers(0, 5), min_size=1, unique=True))
    elif draw(st.booleans()):
        found["pin"] = {"ranks": draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))}
    return found


@st.composite
def tables(draw: st.DrawFn) -> dict[str, Any]:
    """One table of either library."""
    dim = draw(st.sampled_from([1, 4, 30, 64, 100, 512]))
    table = {
        "rows": draw(st.sampled_from([1, 2, 7, 100, 12_345, 10**9])),
        "dim": dim,
        "dtype": draw(st.sampled_from(["fp32", "fp16", "int8"])),
        "kind": draw(st.sampled_from(["torchrec", "dynamicemb"])),
        "optimizer": draw(st.sampled_from(["none", "adam", "adagrad", "rowwise_adagrad"])),
        "num_features": draw(st.integers(1, 3)),
        "weighted": draw(st.booleans()),
        "access": draw(ACCESS),
        "dist_types": draw(st.lists(DIST, min_size=1, max_size=2, unique=True)),
        "constraints": draw(limits(dim)),
    }
    if draw(st.booleans()):
        return {**table, "output": "sequence", "sequence_length": draw(st.floats(0.01, 5000))}
    return {**table, "pooling_factor": draw(st.floats(0.01, 100))}


WORKLOADS = st.fixed_dictionaries(
    {
        "batch_per_rank": st.sampled_from([1, 1000]),
        "mode": st.sampled_from(["training", "inference"]),
        "dedup": st.booleans(),
        "exchange_dtype": st.sampled_from(["fp32", "fp16"]),
        "codec_peak_factor": st.sampled_from([1.0, 2.5]),
        "prefetch_pipeline": st.booleans(),
        "buffers": st.sampled_from(["additive", "largest_collective"]),
        "storage_model": st.sampled_from(["runtime", "torcheasyrec"]),
        "fusion": st.sampled_from(["honoured", "free"]),
        "cache_ratios": st.lists(RATIOS, min_size=1, max_size=2, unique=True),
    }
)
CLUSTERS = [
    cluster(machines, ranks, hbm=hbm, profile=profile)
    for machines, ranks in ((1, 1), (1, 3), (2, 2))
    for hbm in ("80GiB", 0)
    for profile in ("a10", "h100")
]
CLUSTERS.append(uneven_cluster())


@given(st.lists(tables(), max_size=3), WORKLOADS, st.sampled_from(CLUSTERS))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_price_and_compile_or_one_sentence(
    found: list[dict[str, Any]], workload: dict[str, Any], site: Cluster
) -> None:
    """The only error is a sentence; any result passes every rule of the Instance format."""
    try:
        instance = compile_instance(price(model(*found, **workload), site))
    except BadInput as error:
        assert "\n" not in str(error)
        return
    validate(instance)
    assert instance.num_tables == len(found)


def test_most_random_tables_are_priced() -> None:
    """The fuzz above tests more than refusals: a table without constraints always has options."""
    assert all(len(price(model({"rows": 9}), site)) >= 2 for site in CLUSTERS)
