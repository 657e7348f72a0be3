"""TorchRec's search space as an Instance and back.

Machines, groups and capacities of a Topology.
"""

import random
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from torchrec.distributed.planner.perf_models import NoopPerfModel
from torchrec.distributed.planner.types import (
    CustomTopologyData,
    ParameterConstraints,
    Perf,
    PlannerError,
    Topology,
)

from formulations import Placement, Scope, Where, check
from milp_planner.errors import BadInput
from milp_planner.integrations.torchrec.blocks import USABLE, places
from milp_planner.integrations.torchrec.problem import compile_problem, option_name
from tests.milp_planner.integrations.exports.plans import any_placement

from .models import GIB, Case, Mixed, bags, bare_option, random_case, topology
from .torchrec_checks import assert_torchrec_accepts


def _first_shards(case: Case) -> dict[str, tuple[str, int, list[int], list[int]]]:
    """Kind of place, count, first use and first cost of every option of the first table."""
    instance = case.problem().instance
    found = {}
    for option in instance.options_of(0):
        block = instance.block(instance.blocks_of(option)[0])
        use = instance.shard_use[block.entries[0]].tolist()
        cost = instance.shard_cost[block.entries[0]].tolist()
        found[instance.option_names[option]] = (block.where.name, block.count, use, cost)
    return found


def test_instance_is_the_published_one() -> None:
    """Table t1 of ``torchrec_20x8_s0_hbm3_ddr1.5``: 108,559 × 256, pooling 32, batch 1024, 8 ranks.

    The figures are those of that instance file, which TorchRec 1.8.0 wrote independently of this
    code.
    """
    case = Case(
        module=bags([(108_559, 256)]),
        topology=topology(8, hbm=5 * GIB),
        constraints={"t0": ParameterConstraints(pooling_factors=[32.0])},
        batch_size=1024,
    )
    found = _first_shards(case)
    assert found["data_parallel/dense"] == (
        "EVERY_RANK", 1, [112_475_136, 0], [72_398_446, 0, 144_796_892, 3_163_606_895, 0],
    )  # fmt: skip
    assert found["table_wise/fused_uvm_caching"] == (
        "ANY_RANK", 1, [33_500_268, 111_164_416],
        [12_671_493_902, 13_020_833, 25_342_987_805, 13_020_833, 0],
    )  # fmt: skip
    assert found["column_wise/fused"] == (
        "ANY_RANK", 2, [61_873_664, 0], [145_885_591, 6_510_417, 291_771_182, 6_510_417, 0],
    )  # fmt: skip
    assert found["table_row_wise/fused_uvm"] == (
        "ONE_MACHINE", 1, [8_650_752, 13_895_680],
        [12_283_325_195, 13_020_833, 24_566_650_391, 6_006_673_177, 0],
    )  # fmt: skip
    assert len(found) == 16


def test_options_are_in_an_order_of_their_own() -> None:
    """TorchRec's order of options depends on hashes; ours does not."""
    case = Case(module=bags([(1000, 128), (2000, 64)]), topology=topology(4, 2))
    space = case.enumerator().enumerate(case.module, case.sharders)
    first = compile_problem(space, case.reserved()).instance
    tables = {option.fqn: index for index, option in enumerate(space)}
    random.Random(3).shuffle(space)
    space.sort(key=lambda option: tables[option.fqn])
    assert compile_problem(space, case.reserved()).instance.fingerprint == first.fingerprint


def test_kinds_of_place_on_two_hosts() -> None:
    """Row-wise is everywhere, table-row-wise on a host, table-column-wise inside one."""
    case = Case(module=bags([(1000, 256)]), topology=topology(4, 2))
    kinds = {name: where for name, (where, *_) in _first_shards(case).items()}
    assert kinds["row_wise/fused"] == "EVERY_RANK"
    assert kinds["table_row_wise/fused"] == "ONE_MACHINE"
    assert kinds["table_column_wise/fused"] == "ANY_RANK_OF_ONE_MACHINE"
    assert kinds["column_wise/fused"] == "ANY_RANK"


@pytest.mark.parametrize(("hosts", "slices", "expected"), [(4, 2, [2]), (2, 5, [2, 2, 1])])
def test_grid_walks_machines_in_circles(hosts: int, slices: int, expected: list[int]) -> None:
    """Column slices go to different machines until all are used, then start again."""
    option = bare_option("g", [1] * (2 * slices), "grid_shard", "multi_host")
    for index, shard in enumerate(option.shards):
        shard.offset = [index % 2, index // 2]
    instance = compile_problem([option], topology(2 * hosts, 2)).instance
    blocks = [instance.block(index) for index in instance.blocks_of(0)]
    assert [block.count for block in blocks] == expected
    assert all(block.where == Where.ONE_MACHINE and block.distinct for block in blocks)


def test_grid_needs_whole_machines() -> None:
    """Shards that do not fill machines are refused with the table's name."""
    option = bare_option("g", [1, 1, 1], "grid_shard", "multi_host")
    with pytest.raises(BadInput, match=r"table 'g'.*a multiple of 2"):
        compile_problem([option], topology(4, 2))


def test_towers_share_a_machine() -> None:
    """Tables with one dependency share a fusion group with a level for every machine."""
    options = [
        bare_option(name, [1, 1], "table_row_wise", "host", dependency="tower")
        for name in ("a", "b")
    ]
    problem = compile_problem(options, topology(4, 2))
    instance = problem.instance
    assert instance.fusion_groups == ("together:tower",)
    assert instance.option_level.tolist() == [0, 1, 0, 1]
    apart = Placement(np.array([0, 3]), [[np.array([0, 1])], [np.array([2, 3])]])
    together = Placement(np.array([1, 3]), [[np.array([2, 3])], [np.array([2, 3])]])
    assert not check(instance, apart).feasible
    assert check(instance, together).feasible
    ranks = [[s.rank for s in option.shards] for option in problem.apply(together)]
    assert ranks == [[2, 3], [2, 3]]
    assert problem.placement_of(problem.apply(together)).options.tolist() == [1, 3]


def test_pods_with_pooled_ddr() -> None:
    """Machine-bound shards span the pod although DDR is pooled by host: one copy per pod."""
    option = bare_option("t", [5] * 4, "table_row_wise", "host")
    for shard in option.shards:
        shard.storage.ddr = 3  # type: ignore[union-attr]
    instance = compile_problem([option], topology(8, 2, pod_size=2, ddr=6), "machine").instance
    assert [instance.block(b).places for b in range(2)] == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert instance.resources[1].capacity.tolist() == [12] * 4


def test_remainder_ranks_are_closed_to_machine_bound_shards() -> None:
    """On 5 ranks with hosts of 2, the fifth takes only table-wise shards."""
    option = bare_option("t", [1, 1], "table_row_wise", "host")
    other = bare_option("t", [1])
    instance = compile_problem([option, other], topology(5, 2)).instance
    kinds = {instance.option_names[o]: instance.block(o) for o in range(2)}
    assert kinds["table_row_wise/fused"].places == (0, 1)
    assert kinds["table_wise/fused"].places is None


def test_uneven_rows_on_uneven_ranks() -> None:
    """Row-wise shards follow the capacities of custom topology data."""
    custom = CustomTopologyData({"hbm_cap": [GIB, 3 * GIB]}, world_size=2)
    case = Case(module=bags([(1000, 64)]), topology=topology(2, custom_topology_data=custom))
    instance = case.problem().instance
    option = instance.option_index(0, "row_wise/fused")
    use = instance.shard_use[instance.block(instance.blocks_of(option)[0]).entries, 0]
    assert use[1] - use[0] == 500 * 64 * 4


def test_same_name_in_two_modules() -> None:
    """Tables with the same name in two modules are told apart by their paths."""
    case = Case(Mixed({"a": bags([(10, 8)]), "b": bags([(20, 8)])}), topology(2))
    assert sorted(case.problem().instance.table_names) == ["sparse.a.t0", "sparse.b.t0"]


def test_option_names_tell_widths_apart() -> None:
    """Two splits of a table have the number of shards in their names; one does not."""
    split = [bare_option("t", [1] * count, "column_wise") for count in (2, 4)]
    for option in split:
        for index, shard in enumerate(option.shards):
            shard.offset = [0, index]
    both = compile_problem(split, topology(2)).instance
    assert both.option_names == ("column_wise:2/fused", "column_wise:4/fused")
    assert compile_problem(split[:1], topology(2)).instance.option_names == ("column_wise/fused",)
    assert option_name(split[1]) == "column_wise:4/fused"


def test_estimates_that_are_no_numbers_name_the_table() -> None:
    """An infinite estimate is refused with the table's name."""
    option = bare_option("bad", [1])
    option.shards[0].perf = Perf(float("inf"), 0, 0, 0)
    with pytest.raises(BadInput, match=r"'bad'.*not finite"):
        compile_problem([option], topology(2))


@pytest.mark.parametrize("seed", range(12))
def test_any_placement_is_priced_as_torchrec_rates_it(seed: int) -> None:
    """On random models and placements, TorchRec's rating and storage equal ours.

    The rating agrees to 1e-6; the check finds a placement feasible exactly if TorchRec's own
    partitioner takes every shard at its place.
    """
    draw = random.Random(seed)
    case = random_case(seed)
    problem, reserved = case.problem(), case.reserved()
    for _ in range(20):
        placement = any_placement(problem.instance, draw)
        plan = problem.apply(placement)
        verdict = check(problem.instance, placement)
        rating = NoopPerfModel(case.topology).rate(plan)
        assert verdict.objectives["busiest_rank"] / 1e9 == pytest.approx(rating, rel=1e-6)
        with nullcontext() if verdict.feasible else pytest.raises(PlannerError):
            assert_torchrec_accepts(plan, reserved)
        back = problem.placement_of(plan)
        assert back.options.tolist() == placement.options.tolist()
        assert check(problem.instance, back).objectives == verdict.objectives


def test_a_plan_with_other_tables_is_refused() -> None:
    """Plans with missing tables, other tables, or options never enumerated are errors."""
    problem = compile_problem([bare_option("a", [1]), bare_option("b", [1])], topology(2))
    plan = problem.apply(Placement(np.array([0, 1]), [[np.array([0])], [np.array([1])]]))
    with pytest.raises(BadInput, match="1 tables, the model 2"):
        problem.placement_of(plan[:1])
    with pytest.raises(BadInput, match=r"does not have table 'ebc\.b'"):
        problem.placement_of([plan[0], bare_option("c", [1])])
    plan[1].compute_kernel = "fused_uvm"
    with pytest.raises(BadInput, match="not among the options"):
        problem.placement_of(plan)


@pytest.mark.parametrize("kernel", ["fused_triton", "unfused_tpu"])
def test_newer_kernels_are_taken_as_estimated(kernel: str) -> None:
    """The drop-in needs no price of its own: a kernel that TorchRec's enumerator offers is an
    option under its name."""
    option = bare_option("a", [5])
    option.compute_kernel = kernel
    problem = compile_problem([option], topology(2))
    assert problem.instance.option_names == (f"table_wise/{kernel}",)
    assert problem.instance.shard_use[0].tolist() == [5, 0]


PODS, HOSTS = ((0, 1, 2, 3), (4, 5, 6, 7)), ((0, 1), (2, 3), (4, 5), (6, 7))
UNEVEN = CustomTopologyData({"hbm_cap": [5, 9]}, world_size=2)


@pytest.mark.parametrize(
    ("board", "ddr", "machines", "groups", "capacities"),
    [
        (topology(4, 2, hbm=100, ddr=7), "rank", HOSTS[:2], HOSTS[:2],
         (("hbm", Scope.RANK, [100] * 4), ("ddr", Scope.RANK, [7] * 4))),
        (topology(4, 2, hbm=100, ddr=7), "machine", HOSTS[:2], HOSTS[:2],
         (("hbm", Scope.RANK, [100] * 4), ("ddr", Scope.MACHINE, [14, 14]))),
        (topology(8, 2, pod_size=2), "rank", PODS, PODS, None),
        (topology(8, 2, pod_size=2), "machine", HOSTS, PODS, None),
        (topology(5, 2), "rank", (*HOSTS[:2], (4,)), HOSTS[:2], None),
        (Topology(2, "cuda", custom_topology_data=UNEVEN, ddr_cap=3), "rank", ((0, 1),), ((0, 1),),
         (("hbm", Scope.RANK, [5, 9]), ("ddr", Scope.RANK, [3, 3]))),
    ],
)  # fmt: skip
def test_places_of_a_topology(
    board: Topology, ddr: Any, machines: Any, groups: Any, capacities: Any
) -> None:
    """Hosts are machines, with DDR per rank as TorchRec counts it, or the sum over the host's
    ranks; pods of two hosts are groups, while pooled DDR stays with the host; TorchRec rounds the
    number of hosts down, so ranks left over remain ranks; every rank may have its own capacity."""
    found = places(board, ddr)
    assert (found.machines, found.groups, found.usable) == (machines, groups, True)
    assert found.groups_are_machines == (machines == groups)
    assert found.ranks == board.world_size
    assert capacities in (None, found.resources)


@pytest.mark.parametrize("ddr", ["rank", "machine"])
def test_overbooked_rank_is_closed(ddr: str) -> None:
    """A rank whose reservations exceed its memory takes no shard, not even an empty one."""
    reserved = topology(2, 2, hbm=10)
    reserved.devices[1].storage.hbm = -1
    found = places(reserved, ddr)  # type: ignore[arg-type]
    assert not found.usable
    name, _, capacity = found.resources[-1]
    assert name == USABLE and capacity[0] > 0 and capacity[1] == 0
    assert found.resources[0][2] == [10, 0]


def test_ssd_only_where_used() -> None:
    """SSD is a resource only if some shard uses it."""
    names = [name for name, _, _ in places(topology(2), with_ssd=True).resources]
    assert names == ["hbm", "ddr", "ssd"]
