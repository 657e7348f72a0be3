"""Further column widths and cache load factors."""

from __future__ import annotations

import pytest
from torchrec.distributed.planner.types import ParameterConstraints

from milp_planner.errors import BadInput
from milp_planner.integrations.torchrec.lift import Lift, lift
from milp_planner.integrations.torchrec.problem import compile_problem

from .models import Case, bags, topology


def _names(case: Case, limits: Lift) -> list[str]:
    enumerator = case.enumerator()
    space = enumerator.enumerate(case.module, case.sharders)
    lifted = lift(space, limits, case.topology, enumerator, case.constraints)
    assert lifted[: len(space)] == space
    return list(compile_problem(lifted, case.reserved()).instance.option_names)


def _case(**constraint: object) -> Case:
    limits = {"t0": ParameterConstraints(**constraint)}  # type: ignore[arg-type]
    return Case(bags([(5000, 256)]), topology(4, 2), limits)


def test_widths_that_divide() -> None:
    """Widths are divisors in multiples of 4; the whole dim is table-wise and not among them."""
    assert Lift("all").widths(256) == [32, 64, 128]
    assert Lift("all").widths(192) == [32, 48, 64, 96]
    assert Lift([64, 128, 100]).widths(256, least=100) == [128]
    assert Lift().widths(256) == []


def test_every_width_becomes_an_option() -> None:
    """With all widths, column-wise has 2, 4 and 8 shards, each with its price."""
    names = _names(_case(sharding_types=["column_wise"], compute_kernels=["fused"]), Lift("all"))
    assert names == ["column_wise:2/fused", "column_wise:4/fused", "column_wise:8/fused"]


def test_min_partition_bounds_the_width() -> None:
    """A table's ``min_partition`` stays its narrowest width."""
    case = _case(sharding_types=["column_wise"], compute_kernels=["fused"], min_partition=64)
    assert _names(case, Lift("all")) == ["column_wise:2/fused", "column_wise:4/fused"]


def test_every_load_factor_becomes_an_option() -> None:
    """Load factors multiply only the caching options; TorchRec's own stays among them."""
    case = _case(sharding_types=["row_wise"], compute_kernels=["fused", "fused_uvm_caching"])
    assert _names(case, Lift(load_factors=[0.1, 0.4])) == [
        "row_wise/fused",
        "row_wise/fused_uvm_caching",
        "row_wise/fused_uvm_caching/0.1",
        "row_wise/fused_uvm_caching/0.4",
    ]


def test_extra_options_are_priced_by_the_enumerator() -> None:
    """An added option costs what TorchRec charges for that width if a constraint sets it."""
    kind = {"sharding_types": ["column_wise"], "compute_kernels": ["fused"]}
    lifted = _case(**kind)
    enumerator = lifted.enumerator()
    space = lift(
        enumerator.enumerate(lifted.module, lifted.sharders),
        Lift([64]),
        lifted.topology,
        enumerator,
    )
    set_by_hand = _case(**kind, min_partition=64).problem().instance
    found = compile_problem(space, lifted.reserved()).instance
    option = found.option_index(0, "column_wise:4/fused")
    entry = found.block(found.blocks_of(option)[0]).entry(0)
    expected = set_by_hand.block(0).entry(0)
    assert found.shard_cost[entry].tolist() == set_by_hand.shard_cost[expected].tolist()
    assert found.shard_use[entry].tolist() == set_by_hand.shard_use[expected].tolist()


@pytest.mark.parametrize(
    ("widths", "factors"), [("some", []), ([30], []), ([0], []), ([], [1.0]), ([], [0.0])]
)
def test_illegal_limits(widths: object, factors: list[float]) -> None:
    """Widths and load factors that TorchRec cannot run are refused."""
    with pytest.raises(BadInput, match="allowed"):
        Lift(widths, factors)  # type: ignore[arg-type]


def test_a_cap_in_bytes_is_a_load_factor() -> None:
    """Bytes over the table's bytes; caps not below the table, or below 1, are no load factors."""
    limits = Lift(load_factors=[0.5], cache_bytes=[2**20, 2**30])
    assert limits.factors(2**22) == [0.5, 0.25]
    assert limits.factors(2**32) == [0.5, 2**-12, 0.25]
    with pytest.raises(BadInput, match="cache_bytes"):
        Lift(cache_bytes=[0])
