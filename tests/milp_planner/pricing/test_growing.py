"""dynamicemb's tables that grow: slots before a doubling, the moment of a rehash, refusals."""

from typing import Any

import numpy as np
import pytest

from milp_planner import plan
from milp_planner.integrations.exports import dynamicemb as export
from milp_planner.plans.compile import compile_for
from milp_planner.plans.ledger import ledger_of
from milp_planner.pricing.entries import MOMENTS, REHASH, UPDATE
from milp_planner.pricing.outside import capacities
from milp_planner.pricing.storage import doubled_from
from tests.milp_planner.integrations.exports import plans
from tests.milp_planner.pricing.build import cluster, held, model, priced

ONLY = {"constraints": {"modes": ["HBM_ONLY"]}}


def growing(init: int | None, rows: int = 8192, **more: Any) -> dict[str, Any]:
    """A dynamicemb table in HBM; it grows if it starts with less."""
    start = {} if init is None else {"init_capacity": init}
    return {"rows": rows, "kind": "dynamicemb", "optimizer": "sgd", **ONLY, **start, **more}


@pytest.mark.parametrize(
    ("init", "slots"),
    [(256, 512), (128, 512), (384, 768), (512, 512), (1024, 0), (2048, 0)],
)
def test_slots_before_the_last_doubling(init: int, slots: int) -> None:
    """Up to 1,024: 256, 512, all; 128, …; 384, 768, all; and none where there is room for all."""
    assert doubled_from(np.array([init, 1024]), np.array([1024, 1024])).tolist() == [slots, 0]


def test_bytes_by_hand() -> None:
    """1,024 slots of 21 bytes (key, score, digest, counter) and 8 buckets of 4: 21,536 bytes of
    metadata; half of that is the maps of 512 slots."""
    grown, fixed = (held(options, options.names[0])
                    for options in (priced(growing(2048)), priced(growing(None))))  # fmt: skip
    assert (grown["metadata"], grown["old_keys"]) == (21_536, 10_768)
    assert fixed == {**grown, "old_keys": 0}


@pytest.mark.parametrize(
    ("mode", "old"),
    [("HYBRID", 256 * 21 + 2 * 4), ("CACHING", 512 * 21 + 4 * 4), ("HOST_ONLY", 512 * 21 + 4 * 4)],
)
def test_tiers_that_grow(mode: str, old: int) -> None:
    """Of 1,024 slots from 256 on: the host tier alone, 512 of HYBRID's and all of a cached table's;
    a cache and HYBRID's HBM have their size from the start. An external store is none of ours."""
    limits = {"constraints": {"modes": [mode], "cache_ratios": ["1/2"]}}
    for store, expected in ((None, old), ("ps", old if mode == "HYBRID" else 0)):
        options = priced(growing(2048, external_storage=store) | limits)
        assert held(options, options.names[0])["old_keys"] == expected


def test_a_rehash_is_a_moment_of_its_own() -> None:
    """It limits HBM only where a table grows, with all that stays and nothing exchanged; without
    growth the Instance is as before."""
    table = {"rows": 80_000_000, "dim": 8}
    small = {"batch_per_rank": 1}
    names = {
        init: [r.name for r in compile_for(model(growing(init, **table), **small), cluster(),
                                           "step_time").instance.resources]
        for init in (None, 1_000_000)
    }  # fmt: skip
    assert not any(REHASH in name for name in names[None])
    assert any(name == "hbm" or name.endswith(REHASH) for name in names[1_000_000])
    read = model(growing(1_000_000, **table), **small)
    rooms = capacities(read, cluster())
    assert {*rooms} == {*MOMENTS, REHASH} and rooms[REHASH] == rooms[UPDATE]


def test_old_and_new_maps_decide_what_fits() -> None:
    """80 million rows of 32 bytes on one rank: 53 bytes a slot fit, 21 more for the maps of 0.8
    times as many do not; where there is room, the rehash is the ledger's fullest moment."""
    table = {"rows": 80_000_000, "dim": 8}
    place = cluster(1, 1, hbm="4600MB", ddr="100GB", reservations={"hbm_percent": 0})
    found = [
        plan(model(growing(init, **table), batch_per_rank=1), place, time_limit=10).status
        for init in (None, 1_000_000)
    ]
    assert found == ["optimal", "infeasible"]
    wide = cluster(1, 1, hbm="8GB", ddr="100GB", reservations={"hbm_percent": 0})
    grown = plan(model(growing(1_000_000, **table), batch_per_rank=1), wide, time_limit=10)
    ledger = ledger_of(grown)
    assert ledger is not None
    (rank,) = ledger.hbm
    assert rank.moment == REHASH
    before = 1_000_064 * 2**6  # whole buckets of 128, doubled while that is less than all
    assert rank.entries["old_keys"] == -(-rank.entries["metadata"] * before // 80_000_000)


def test_it_is_exported() -> None:
    """A rank's slots at first, in whole buckets; a table that does not grow has no such field."""
    tables = (plans.dynamic("d", init_capacity=1000), plans.dynamic("e"))
    found = export.document(plans.chosen_plan({}, *tables))["tables"]
    assert found["d"]["dynamicemb_options"]["init_capacity"] == 256
    assert "init_capacity" not in found["e"]["dynamicemb_options"]
