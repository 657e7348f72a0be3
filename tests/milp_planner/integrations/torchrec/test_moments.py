"""The ledger of a TorchRec plan, compared with TorchRec's estimate."""

import logging
from typing import Any

import pytest
from torch import nn
from torchrec.distributed.embedding import EmbeddingCollectionSharder
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.fbgemm_qcomm_codec import (
    CommType,
    QCommsConfig,
    get_qcomm_codecs_registry,
)
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.distributed.types import CacheParams

from milp_planner.inputs import Cluster, Model
from milp_planner.integrations.torchrec.moments import above_estimate, fullest_moments
from milp_planner.plans.ledger import hbm_of, held_of

from .models import Case, bags, planned_for, sequences, topology

COLUMNS, IDS, BATCH = 256, 5, 100


def case_of(module: nn.Module, sharding: str, sharders: list[Any] | None = None) -> Case:
    """A module's tables on two ranks, five ids a sample."""
    limits = ParameterConstraints(sharding_types=[sharding], pooling_factors=[float(IDS)])
    names = dict.fromkeys(("t0", "t1", "s0", "s1"), limits)
    case = Case(module, topology(2), constraints=names, batch_size=BATCH)
    return case if sharders is None else Case(**{**vars(case), "sharders": sharders})


def ours(
    output: str, sharding: str, wire: str = "fp32", width: int = COLUMNS
) -> list[tuple[str, int]]:
    """The fullest moment and its bytes on both ranks, for the same two tables planned by us."""
    from milp_planner import plan

    use: dict[str, object] = {"pooling_factor": IDS}
    if output == "sequence":
        use = {"output": "sequence", "sequence_length": IDS}
    tables = [
        {"name": f"t{i}", "rows": 1000, "dim": COLUMNS, "optimizer": "none", **use,
         "constraints": {"sharding_types": [sharding], "modes": ["HBM_ONLY"],
                         **({"column_widths": [width]} if sharding == "column_wise" else {})}}
        for i in range(2)
    ]  # fmt: skip
    workload = {"batch_per_rank": BATCH, "exchange_dtype": wire}
    model = Model.from_dict({"name": "m", "workload": workload, "tables": tables})
    cluster = Cluster.from_dict({
        "name": "c", "machines": 1, "ranks_per_machine": 2, "hbm": "1GiB", "ddr": "1GiB",
        "interconnect": {"intra_machine": "1GB/s"}, "profile": "torchrec-default",
        "reservations": {"hbm_percent": 0, "kjt_multiple": 0, "min_headroom": 0},
    })  # fmt: skip
    made = plan(model, cluster, time_limit=5)
    held = held_of(made)
    return [(place.moment, place.used) for place in hbm_of(made, held)]


@pytest.mark.parametrize("sharding", ["table_wise", "row_wise", "column_wise"])
@pytest.mark.parametrize("output", ["pooled", "sequence"])
def test_it_is_the_ledger_of_the_same_plan(output: str, sharding: str) -> None:
    """Moment and bytes of each rank are those of the same tables planned from a model file."""
    shapes = [(1000, COLUMNS)] * 2
    case = case_of(bags(shapes) if output == "pooled" else sequences(shapes), sharding)
    best = planned_for(case).best_plan
    found = fullest_moments(best, case.topology, case.constraints, case.sharders)
    width = best[0].shards[0].size[1]
    assert [(f.moment, f.bytes) for f in found] == ours(output, sharding, width=width)


def test_replicas_are_counted_with_their_gradients() -> None:
    """Weights, a bucket and a gradient of 1,024,000 bytes, ids and the output's activations."""
    case = case_of(bags([(1000, COLUMNS)]), "data_parallel")
    found = fullest_moments(planned_for(case).best_plan, case.topology, case.constraints)
    kept = {"weights": 1_024_000, "gradient_bucket": 1_024_000, "dense_gradients": 1_024_000}
    assert [each.entries.items() >= kept.items() for each in found] == [True, True]


def test_the_sharders_codec_is_seen() -> None:
    """With fp16 on the wire the clamp's copies are counted."""
    config = QCommsConfig(CommType.FP16, CommType.FP16)
    coded: Any = EmbeddingCollectionSharder(qcomm_codecs_registry=get_qcomm_codecs_registry(config))
    case = case_of(sequences([(1000, COLUMNS)] * 2), "table_wise", [coded])
    found = fullest_moments(
        planned_for(case).best_plan, case.topology, case.constraints, case.sharders
    )
    assert [(f.moment, f.bytes) for f in found] == ours("sequence", "table_wise", "fp16")
    assert found[0].entries["encoding"] == 3 * found[0].entries["output"] // 2


def test_ranks_far_above_the_estimate_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """The log has the rank, the moment, both figures and the largest entries; for large tables with
    few ids both are within 10%."""
    case = case_of(sequences([(1000, COLUMNS)] * 2), "table_wise")
    with caplog.at_level(logging.WARNING):
        best = planned_for(case, stats=None).best_plan
    worst = max(
        fullest_moments(best, case.topology, case.constraints), key=lambda f: f.bytes - f.estimate
    )
    assert "HBM on ranks all 2: over 10% above TorchRec's estimate" in caplog.text
    assert f"in {worst.moment}, estimated" in caplog.text
    assert "output" in caplog.text
    large = case_of(bags([(10_000_000, COLUMNS)]), "row_wise")
    assert above_estimate(planned_for(large).best_plan, large.topology, large.constraints) is None


def test_other_kernels_count_as_estimated() -> None:
    """A kernel that the ledger does not know counts TorchRec's own bytes and what it receives."""
    case = case_of(bags([(1000, COLUMNS)] * 2), "table_wise", [EmbeddingBagCollectionSharder()])
    best = planned_for(case).best_plan
    for option in best:
        option.compute_kernel = "customized_kernel"
    for each in fullest_moments(best, case.topology, case.constraints):
        assert each.entries["as_estimated"] == each.estimate
        assert set(each.entries) - {"as_estimated"} == {"activations", "received"} or (
            each.moment != "forward_receive"
        )


def test_a_cache_holds_its_share_of_the_rows() -> None:
    """A load factor of 0.1, which no binary fraction equals, is a tenth of 1,024,000 bytes; if the
    option has none, the sharder's counts, else TorchRec's fifth."""
    case = case_of(bags([(1000, COLUMNS)]), "table_wise")
    [option] = planned_for(case).best_plan
    option.compute_kernel = "fused_uvm_caching"
    option.cache_params = CacheParams(load_factor=0.1)
    most = max(
        fullest_moments([option], case.topology, case.constraints), key=lambda each: each.bytes
    )
    assert most.entries["weights"] == 102_400
    assert most.entries["cache_index"] == 4 * 1000 + 16 * 100
    option.cache_params = None
    sharder: Any = EmbeddingBagCollectionSharder(fused_params={"cache_load_factor": 0.3})
    of_sharder = fullest_moments([option], case.topology, case.constraints, [sharder])
    assert max(each.entries.get("weights", 0) for each in of_sharder) == 307_200
    unsaid = fullest_moments([option], case.topology, case.constraints)
    assert max(each.entries.get("weights", 0) for each in unsaid) == 204_800
