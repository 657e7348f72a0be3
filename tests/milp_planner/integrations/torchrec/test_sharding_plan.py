"""The ShardingPlan object and its document, in both directions."""

import json
import random

import pytest
from torchrec.distributed.planner.planners import to_sharding_plan

from milp_planner.errors import BadInput
from milp_planner.integrations.exports import torchrec as export
from milp_planner.integrations.torchrec.sharding_plan import from_document, to_document

from ..exports import plans
from .models import random_case


@pytest.mark.parametrize("seed", range(6))
def test_round_trip_of_torchrecs_plans(seed: int) -> None:
    """TorchRec's plan → JSON text → TorchRec's plan: modules, shards, ranks, load factors."""
    case = random_case(seed)
    problem = case.problem()
    options = problem.apply(plans.any_placement(problem.instance, random.Random(seed)))
    plan = to_sharding_plan(options, case.topology)
    document = to_document(plan, case.topology.world_size, 2, "cuda")
    back = from_document(json.dumps(document))
    assert to_document(back, case.topology.world_size, 2, "cuda") == document
    assert str(back) == str(plan)
    for path, module in plan.plan.items():
        for name, table in module.items():
            again = back.plan[path][name]
            assert again.sharding_spec == table.sharding_spec
            assert again.ranks == table.ranks


@pytest.mark.parametrize("seed", range(6))
def test_our_plans_become_torchrecs(seed: int) -> None:
    """A milp-planner plan exported as JSON loads as TorchRec's object, shard for shard."""
    plan = plans.random_plan(seed, *plans.MIXED[:3])
    found = from_document(export.write(plan)).plan[""]
    for placed in plan.tables:
        table = found[placed.name]
        assert (table.sharding_type, table.compute_kernel) == (placed.sharding_type, placed.kernel)
        assert table.ranks == [rank for block in placed.ranks for rank in block]
        if placed.mode == "CACHING":
            assert table.cache_params.load_factor == pytest.approx(float(placed.cache_ratio))


def test_incomplete_entries() -> None:
    """An entry without a kernel, and a file of another kind, are errors."""
    document = export.document(plans.chosen_plan({}, plans.static("a")))
    del document["plan"][""]["a"]["compute_kernel"]
    with pytest.raises(BadInput, match="'a': its entry is incomplete"):
        from_document(document)
    with pytest.raises(BadInput, match="format must be"):
        from_document({"plan": {}})
    for key, value in (("shards", 3), ("shards", [{}]), ("ranks", None), ("shards", [[1]])):
        broken = export.document(plans.chosen_plan({"a": "row_wise/HBM_ONLY"}, plans.static("a")))
        broken["plan"][""]["a"][key] = value
        with pytest.raises(BadInput, match="'a': its entry is incomplete"):
            from_document(broken)
