"""Rows over several machines in TorchRec's own objects, and on two gloo processes where it runs."""

from pathlib import Path
from typing import Any

import pytest
from torch import nn
from torchrec.distributed.types import ShardingPlan

from milp_planner.errors import BadInput
from milp_planner.integrations.exports import torchrec as export
from milp_planner.integrations.torchrec.sharding_plan import HAS_NODES, from_document, to_document

from ..exports import plans
from ..exports.test_nodes import two
from . import two_processes

LACKS = "the installed TorchRec has no num_nodes (pull requests 4681 to 4683)"


@pytest.mark.skipif(HAS_NODES, reason="the installed TorchRec has num_nodes")
def test_a_torchrec_without_it_refuses_by_name() -> None:
    """The object cannot be built, and the sentence names field, version and table."""
    with pytest.raises(BadInput, match=r"'a': rows over 2 machines need num_nodes, which TorchRec"):
        from_document(export.write(two()))


@pytest.mark.skipif(not HAS_NODES, reason=LACKS)
def test_it_is_on_the_object() -> None:
    """ParameterSharding has the number, both ways."""
    found = from_document(export.write(two()))
    assert found.plan[""]["a"].num_nodes == 2
    assert to_document(found, 4, 2, "cuda")["plan"][""]["a"]["num_nodes"] == 2


def _one_step(rank: int) -> dict[str, Any]:
    """One of two machines of one process each, with the rows of a table on both."""
    tables = [
        plans.static(name, rows, dim, constraints={
            "sharding_types": types, "num_nodes": 2 if name == "host_rows" else 1,
        })
        for name, (rows, dim, types) in two_processes.SHAPES.items()
    ]  # fmt: skip
    site = plans.cluster(2, 1, hbm="0GiB")
    document = export.document(plans.chosen_plan({}, *tables, on=site))

    def planned(module: nn.Module, sharders: list[Any]) -> ShardingPlan:
        return from_document(document)

    return two_processes.train_one_step(rank, planned)


@pytest.mark.skipif(not HAS_NODES, reason=LACKS)
def test_a_step_equals_the_unsharded_module(tmp_path: Path) -> None:
    """Outputs and weights after one step agree to the tolerance of another order of sums."""
    seen = two_processes.in_processes(_one_step, tmp_path, local=1)
    two_processes.assert_trained_alike(seen)
