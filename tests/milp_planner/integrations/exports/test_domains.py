"""Plans over a domain, exported to TorchRec and read back."""

from __future__ import annotations

import pytest

from milp_planner import plan
from milp_planner.inputs.cluster import Cluster
from milp_planner.integrations.exports import torchrec
from milp_planner.plans.placement import Plan
from milp_planner.start.mapping import start_on
from tests.milp_planner.integrations.exports.plans import cluster, model, static


def place() -> Cluster:
    """4 machines of 2 ranks in domains of two."""
    links = {"intra_machine": "600GB/s", "inter_machine": "12.5GB/s", "domains": {"machines": 2}}
    return Cluster.from_dict({**cluster(4).to_dict(), "interconnect": links})


def planned(kind: str) -> Plan:
    """A plan of one table with a single sharding type."""
    limits = {"sharding_types": [kind], "modes": ["HBM_ONLY"]}
    return plan(model(static("a", 1003, constraints=limits)), place(), formulation="cpsat")


def test_the_export_says_the_span() -> None:
    """It has ``pod_size`` and what to set at run time, unless no rows are split over machines."""
    wide, whole = planned("table_row_wise"), planned("table_wise")
    document = torchrec.document(wide)
    assert (document["pod_size"], document["local_world_size"]) == (2, 2)
    assert [s["shard_sizes"] for s in document["plan"][""]["a"]["shards"]] == [
        [251, 128], [251, 128], [251, 128], [250, 128],
    ]  # fmt: skip
    assert "TORCHREC_RESOLVED_POD_SIZE=2" in torchrec.notes(wide)[0]
    assert "pod_size" not in torchrec.document(whole)
    assert torchrec.notes(whole) == []


def test_a_grid_over_machines_is_warned_of() -> None:
    """TorchRec cannot build it."""
    assert "grid_shard" in torchrec.notes(planned("grid_shard"))[1]


@pytest.mark.parametrize("kind", ["table_row_wise", "grid_shard"])
def test_a_plan_over_a_domain_is_known_as_todays(kind: str) -> None:
    """Given as today's plan, it is the same placement of the same option."""
    found = planned(kind)
    known = start_on(found, found.model, found.cluster, "step_time", exact=True).placement
    assert found.outcome.placement is not None
    assert known.options.tolist() == found.outcome.placement.options.tolist()
    assert known.to_lists(0) == found.outcome.placement.to_lists(0)
