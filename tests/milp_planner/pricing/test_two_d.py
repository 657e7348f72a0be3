"""Prices and bytes of one sharding group: by hand, against brute force, and what is refused."""

from typing import Any

import numpy as np
import pytest

from formulations import Settings
from milp_planner import plan, verify
from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster
from milp_planner.inputs.sharding_group import group_of
from milp_planner.plans.compile import compile_for
from milp_planner.plans.ledger import ledger_of
from milp_planner.pricing import Options, price
from milp_planner.pricing.entries import MOMENTS, SHARD_ENTRIES, alive
from milp_planner.pricing.exchange import links_of
from tests.corpus import mistakes
from tests.formulations.brute_force import brute_force
from tests.milp_planner.pricing.build import cluster, entry, model

SLOW = {"intra_machine": "600GiB/s", "inter_machine": "12.5GiB/s"}
HBM = {"modes": ["HBM_ONLY"]}
T = {"rows": 1_000_000, "dim": 128, "pooling_factor": 10.0, "constraints": HBM}
WEIGHTS, STATE = 512_000_000, 4_000_000


def divided(layout: str = "strided", strategy: str = "default", **more: Any) -> Cluster:
    """64 ranks, 8 per machine, in 4 groups of 16."""
    two_d = {"sharding_group_size": 16, "layout": layout, "strategy": strategy, **more}
    return cluster(8, 8, interconnect=SLOW, two_d=two_d)


def sync_ms(options: Options, name: str = "table_wise/HBM_ONLY") -> float:
    """Milliseconds of an option's first shard in the sync phase."""
    return float(options.entries.cost[entry(options, name), -1]) / 1e9


@pytest.mark.parametrize(
    ("layout", "wanted"), [("strided", 1.2014061213), ("contiguous", 57.6674938202)]
)
def test_sync_vectors(layout: str, wanted: float) -> None:
    """4 replicas of 10^6 × 128 floats and row-wise state, 516,000,000 bytes: inside a machine, and
    over the network while all of a machine's ranks do the same."""
    assert sync_ms(price(model(T), divided(layout))) == pytest.approx(wanted, rel=1e-8)


def test_sync_every_eighth_step() -> None:
    """An eighth of the time per step."""
    found = sync_ms(price(model(T), divided(sync_interval=8)))
    assert found == pytest.approx(1.2014061213 / 8, rel=1e-8)


@pytest.mark.parametrize(
    ("layout", "one_way"), [("strided", 0.5960464478), ("contiguous", 28.6102294922)]
)
def test_fully_sharded_vectors(layout: str, one_way: float) -> None:
    """Reduce-scatter and all-gather of the table, which is otherwise never averaged."""
    options = price(model(T), divided(layout, "fully_sharded", sync_interval="never"))
    assert sync_ms(options) == pytest.approx(2 * one_way, rel=1e-8)


def moments(options: Options, name: str) -> dict[str, int]:
    """Bytes of weights alone at each moment."""
    names = [e.name for e in SHARD_ENTRIES]
    rows = np.isin(names, ["weights", "gathered_weights", "padded_weights"])
    ledger = options.entries.ledger[entry(options, name)]
    return {m: int((ledger * rows) @ alive(m)) for m in MOMENTS}


def test_fully_sharded_bytes() -> None:
    """128,000,000 in the dense part and 640,000,000 at the lookup (docs/hardware.md)."""
    found = moments(price(model(T), divided(strategy="fully_sharded")), "table_wise/HBM_ONLY")
    held = {m for m in MOMENTS if found[m] == 128_000_000}
    assert held == {"dense_part", "backward_send"}
    assert {found[m] for m in MOMENTS} == {128_000_000, 640_000_000}


def test_fully_sharded_bytes_that_do_not_divide() -> None:
    """3 replicas of 128,000,128 elements: 170,666,840 kept, and a padded copy at the lookup."""
    two_d = {"sharding_group_size": 2, "layout": "strided", "strategy": "fully_sharded"}
    options = price(model({**T, "rows": 1_000_001}), cluster(1, 6, two_d=two_d))
    found = moments(options, "table_wise/HBM_ONLY")
    assert found["dense_part"] == 170_666_840
    x, kept = 512_000_512, 170_666_840
    assert found["forward_send"] == 2 * x + (3 * kept - x) + kept == 1_194_667_872
    assert found["backward_receive"] == x + kept


def test_a_group_is_priced_as_a_cluster_of_its_ranks() -> None:
    """Strided, with 2 ranks on each of 8 machines: all phases but sync cost what they cost on such
    a cluster, except that replicated tables still meet all 64 ranks."""
    group = price(model(T), divided())
    alone = price(model(T), cluster(8, 2, interconnect=SLOW))
    assert group.names == alone.names
    same = [not name.startswith("data_parallel") for name in group.names]
    rows = np.repeat(same, np.diff(group.entries.first))
    assert (group.entries.cost[rows, :-1] == alone.entries.cost[rows]).all()
    assert (group.entries.ledger == alone.entries.ledger).all()
    whole = price(model(T), cluster(8, 8, interconnect=SLOW))
    first = [o.entries.cost[entry(o, "data_parallel/HBM_ONLY"), 3] for o in (group, whole, alone)]
    assert first[0] == first[1] != first[2]


def test_state_is_averaged_in_fp32() -> None:
    """Row-wise Adagrad has 4 bytes per row whatever its type, Adagrad 4 per cell, SGD none."""
    found = {
        kind: sync_ms(price(model({**T, "dtype": "fp16", "optimizer": kind}), divided()))
        for kind in ("rowwise_adagrad", "adagrad", "sgd")
    }
    per_byte = 1.2014061213 / (WEIGHTS + STATE)
    cells = 128_000_000
    wanted = {"rowwise_adagrad": 4_000_000, "adagrad": 4 * cells, "sgd": 0}
    for kind, state in wanted.items():
        assert found[kind] == pytest.approx(per_byte * (2 * cells + state), rel=1e-8)


def test_rows_in_host_memory_pass_the_host_link() -> None:
    """It is slower than the replicas' links, so it decides: 2 · 516,000,000 bytes over 32 GiB/s."""
    table = {**T, "constraints": {"modes": ["HOST_ONLY"]}}
    found = sync_ms(price(model(table), divided()), "table_wise/HOST_ONLY")
    assert found == pytest.approx(2 * (WEIGHTS + STATE) / (32 * 2**30) * 1e3, rel=1e-8)


def test_inference_has_nothing_to_average() -> None:
    """There is no sync, and there are no gathered copies."""
    options = price(model(T, mode="inference"), divided(strategy="fully_sharded"))
    assert not options.entries.cost[:, -1].any()
    assert len(set(moments(options, "table_wise/HBM_ONLY").values())) == 1


@pytest.mark.parametrize(("table", "why"), mistakes(__file__, "what sync would not keep equal"))
def test_what_sync_would_not_keep_equal(table: dict[str, Any], why: str) -> None:
    """Each gets one sentence that names the table."""
    with pytest.raises(BadInput, match="t0") as error:
        price(model(table), divided())
    assert why in str(error.value)


def test_caches_are_not_offered() -> None:
    """A table that allows every mode is offered those that sync keeps equal."""
    modes = {name.split("/")[1] for name in price(model({}), divided()).names}
    assert modes == {"HBM_ONLY", "HOST_ONLY"}


def test_largest_collective_counts_gathered_weights_of_all() -> None:
    """One collective's gathered weights are in memory while another's outputs are sent."""
    sequence = {**T, "output": "sequence", "sequence_length": 200.0}
    del sequence["pooling_factor"]
    given, place = (
        model(T, sequence, buffers="largest_collective"),
        divided("strided", "fully_sharded"),
    )
    instance = compile_for(given, place, "step_time").instance
    names = [resource.name for resource in instance.resources]
    used = [index for index, name in enumerate(names) if "sequence" in name]
    pooled = entry(price(given, place), "table_wise/HBM_ONLY")
    assert used
    assert all(640_000_000 < instance.shard_use[pooled, i] < 650_000_000 for i in used)


@pytest.mark.parametrize("layout", ["strided", "contiguous"])
@pytest.mark.parametrize("strategy", ["default", "fully_sharded"])
@pytest.mark.parametrize("hbm", ["80GiB", "700KiB", "300KiB"])
def test_brute_force_agrees(layout: str, strategy: str, hbm: str) -> None:
    """Three tables on a group of 4 of 8 ranks, with and without enough memory: the best of all
    placements, and a ledger that the instance charges."""
    two_d = {"sharding_group_size": 4, "layout": layout, "strategy": strategy}
    kinds = ["table_wise", "table_row_wise", "row_wise", "data_parallel"]
    limits = {"sharding_types": kinds, "modes": ["HBM_ONLY"]}
    tables = [{"rows": rows, "constraints": limits} for rows in (900, 700, 500)]
    place = cluster(4, 2, hbm=hbm, two_d=two_d)
    given = model(*tables, batch_per_rank=1)
    truth = brute_force(compile_for(given, place, "step_time").instance)
    found = plan(given, place, formulation="cpsat", settings=Settings(time_limit=20, workers=1))
    assert found.outcome.objective == truth.objective
    if truth.objective is not None:
        assert verify(found).ok
        assert ledger_of(found) is not None


def test_links_of_a_group() -> None:
    """Replicas strided in a machine of 8: 4 of a set send 3/4 of a buffer over their own links."""
    links = links_of(group_of(divided()))
    assert links.replica == pytest.approx(600 * 2**30 * 4 / 3)
    assert links.ranks == 16
