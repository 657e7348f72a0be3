"""Weights that leave HBM between forward and backward: bytes, twins, what is refused."""

from typing import Any

import numpy as np
import pytest

from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster
from milp_planner.plans.compile import compile_instance
from milp_planner.pricing import Options, price
from milp_planner.pricing.entries import DENSE, MOMENTS, SHARD_NAMES, UPDATE, alive
from milp_planner.pricing.outside import capacities
from tests.corpus import mistakes
from tests.milp_planner.pricing.build import cluster, entry, model

WINDOW = {"stash_window_ms": 20.0}
TABLE = {"rows": 1_000_000, "dim": 128, "optimizer": "adagrad"}


def site(**fields: Any) -> Cluster:
    """Eight ranks of 80 GiB with 30 GiB for the dense part alone."""
    held = {"hbm_percent": 0, "kjt_multiple": 0, "min_headroom": 0, "activations": "30GiB"}
    return cluster(reservations=held, **fields)


def options(*tables: dict[str, Any], **workload: Any) -> Options:
    """The options priced there, with a window of 20 ms."""
    return price(model(*tables, **{**WINDOW, **workload}), site())


def test_a_twin_by_hand() -> None:
    """512,000,000 bytes of weights are an entry of their own, absent in the dense part, and take
    twice as much host memory. State, ids and exchange are those of the table that stays."""
    priced = options(TABLE)
    stays, leaves = (
        dict(zip(SHARD_NAMES, priced.entries.ledger[entry(priced, n)].tolist(), strict=True))
        for n in ("table_wise/HBM_ONLY", "table_wise/HBM_ONLY/stash")
    )
    assert (leaves.pop("weights"), leaves.pop("stashed")) == (0, 512_000_000)
    assert (stays.pop("weights"), stays.pop("stashed")) == (512_000_000, 0)
    assert leaves == stays
    assert leaves["state"] == 512_000_000
    assert priced.entries.ddr[entry(priced, "table_wise/HBM_ONLY/stash")] == 1_024_000_000


def test_only_the_dense_part_is_without_them() -> None:
    """At every other moment a twin holds as many bytes, and it costs and moves the same."""
    priced = options(TABLE)
    stays, leaves = (entry(priced, f"row_wise/HBM_ONLY{end}") for end in ("", "/stash"))
    ledger = priced.entries.ledger
    less = {m: int((ledger[stays] - ledger[leaves]) @ alive(m)) for m in MOMENTS}
    assert less == {m: 64_000_000 if m == DENSE else 0 for m in MOMENTS}
    assert priced.entries.hbm[stays] == priced.entries.hbm[leaves]
    assert priced.entries.cost[stays].tolist() == priced.entries.cost[leaves].tolist()
    assert priced.entries.move[stays] == priced.entries.move[leaves]


def test_the_window_limits_a_rank() -> None:
    """20 ms at 32 GiB/s allow every rank 687,194,767 stashed bytes, each way."""
    priced = options(TABLE)
    instance = compile_instance(priced)
    at = [r.name for r in instance.resources].index("stash")
    assert instance.resources[at].capacity.tolist() == [687_194_767] * 8
    stashed = priced.entries.ledger[:, SHARD_NAMES.index("stashed")]
    assert instance.shard_use[:, at].tolist() == stashed.tolist()
    assert "stash" not in [r.name for r in compile_instance(price(model(TABLE), site())).resources]


def test_the_dense_part_has_less_room() -> None:
    """Apart from the activations, it has 30 GiB less than the update, which exchanges nothing."""
    rooms = capacities(model(TABLE), site())
    assert rooms[UPDATE][0] == 80 * 2**30
    assert rooms[DENSE][0] == 50 * 2**30 - 2 * 512 * 128 * 4


def names(table: dict[str, Any], **workload: Any) -> set[str]:
    """Names of the options that are stashed."""
    found = options({**TABLE, **table}, **workload)
    return {name for name in found.names if "stash" in name}


def test_what_is_stashed() -> None:
    """TorchRec's tables in HBM_ONLY that are not replicated, in training, with a window, if bytes
    are counted as the runtime's."""
    shapes = {"table_wise", "row_wise", *(f"column_wise:{n}" for n in (2, 4))}
    assert names({}) == {f"{shape}/HBM_ONLY/stash" for shape in shapes}
    assert names({"constraints": {"stash": "never"}}) == set()
    assert names({}, stash_window_ms=None) == set()
    assert names({}, mode="inference") == set()
    assert names({}, storage_model="torcheasyrec") == set()
    assert names({"kind": "dynamicemb"}) == set()
    only = options({**TABLE, "constraints": {"stash": "always"}})
    assert all(name.endswith("/HBM_ONLY/stash") for name in only.names)
    pinned = {"constraints": {"pin": {"stash": True, "sharding_type": "row_wise"}}}
    assert names(pinned) == {"row_wise/HBM_ONLY/stash"}


@pytest.mark.parametrize(("table", "workload"), mistakes(__file__, "asking in vain is refused"))
def test_asking_in_vain_is_refused(table: dict[str, Any], workload: dict[str, Any]) -> None:
    """The sentence says what a stash needs."""
    with pytest.raises(BadInput, match="stash: it needs stash_window_ms in the workload"):
        options({**TABLE, **table}, **workload)


def test_a_stash_that_frees_nothing_is_refused() -> None:
    """Without a reservation for the dense part alone, the error says what to write."""
    with pytest.raises(BadInput, match=r"needed: reservations\.activations"):
        price(model(TABLE, **WINDOW), cluster())


def test_a_pin_against_the_constraint_is_refused() -> None:
    """The table is pinned to a stash that its constraint forbids."""
    with pytest.raises(BadInput, match="which the other constraints exclude"):
        model({**TABLE, "constraints": {"stash": "never", "pin": {"stash": True}}})


def test_the_twins_are_what_the_table_itself_is() -> None:
    """Without a window the options are the same, byte for byte."""
    with_window, without = options(TABLE), price(model(TABLE), site())
    kept = [i for i, name in enumerate(with_window.names) if "stash" not in name]
    assert [with_window.names[i] for i in kept] == list(without.names)
    first = with_window.entries.first
    rows = np.concatenate([np.arange(first[i], first[i + 1]) for i in kept])
    assert (with_window.entries.ledger[rows] == without.entries.ledger).all()


def test_other_collectives_hold_them_too() -> None:
    """If only the largest collective's buffers count, a table of another collective still has its
    weights in HBM at every moment but the dense part."""
    priced = options(TABLE, {**TABLE, "output": "sequence"}, buffers="largest_collective")
    instance = compile_instance(priced)
    at = entry(priced, "table_wise/HBM_ONLY/stash")
    least = {
        resource.name: int(used)
        for resource, used in zip(instance.resources, instance.shard_use[at], strict=True)
        if resource.name.startswith("hbm")
    }
    assert any("sequence" in name for name in least)
    for name, used in least.items():
        assert (used >= 1_024_000_000) == (DENSE not in name)
