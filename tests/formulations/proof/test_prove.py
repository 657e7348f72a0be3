"""The prover: what it certifies is true, and on small instances mostly the optimum."""

import random
from contextlib import suppress
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from formulations.classes import classes_of
from formulations.errors import InstanceError
from formulations.evidence.verify import certifies
from formulations.instance import Instance, IntArray, Objective, Where
from formulations.proof import prove as prove_module
from formulations.proof.build import build_rows
from formulations.proof.prove import prove, prove_infeasible, symmetric_lp
from formulations.proof.relaxation import Relaxation, _Matrix
from formulations.proof.tree import Tree
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import ANY, EVERY, MACHINE, MACHINES, at, built, four_tables
from tests.formulations.fuzz.generate import COSTS, Kinds, draw
from tests.formulations.strategies import instances

LOOSE = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@LOOSE
@given(instances())
def test_a_linear_program_cut_short_proves_something_true(instance: Instance) -> None:
    """After one step of the simplex method there is a bound, and the checker accepts it."""
    truth = brute_force(instance).objective
    if truth is None:
        return
    load = _Matrix.load

    def limited(matrix: _Matrix) -> Any:
        highs = load(matrix)
        highs.setOptionValue("simplex_iteration_limit", 1)
        return highs

    with patch.object(_Matrix, "load", limited):
        certificate = prove(instance, truth)
    assert certificate is not None and certificate.target is not None
    assert certificate.target <= truth
    assert certifies(instance, certificate)


def test_most_infeasible_instances_are_proved() -> None:
    """Of 163 small instances without a plan at least 144 get a certificate. They are drawn by
    number: what Hypothesis draws depends on the modules imported, and a share of it with that."""
    kinds = Kinds(
        tuple(Objective), tuple(Where), {"small": COSTS["small"]}, uses=(6,),
        tables=[0, 1, 2, 3, 4, 2, 3, 4], plain=0.2, most=20_000,
    )  # fmt: skip
    drawn = []
    for number in range(400):
        with suppress(InstanceError):  # a pin with ranks for another number of blocks
            drawn.append(draw(random.Random(number), "drawn", kinds))
    without = [i for i in drawn if i is not None and brute_force(i).objective is None]
    proved = [prove_infeasible(each, seconds=30) is not None for each in without]
    assert len(without) == 163 and sum(proved) >= 144


def test_the_certificate_is_as_strong_as_the_linear_program() -> None:
    """Rounding multipliers to integers weakens no bound visibly; most instances have one."""
    bounds = []

    @LOOSE
    @given(instances(fusion=False, constraints=False))
    def each(instance: Instance) -> None:
        solved = symmetric_lp(instance, targets=False)
        bounds.append(solved is not None)
        if solved is not None:
            assert solved.bound >= solved.value - 1e-6 * max(1.0, abs(solved.value))

    each()
    assert sum(bounds) > len(bounds) / 2


def repeated(instance: Instance, times: int) -> Instance:
    """The instance with every table several times; pins, moves and forbidden options are those of
    the first."""

    def ends(offsets: IntArray) -> IntArray:
        return np.append(0, np.cumsum(np.tile(np.diff(offsets), times)))

    names = ("option_group", "option_level", "block_where", "block_count", "block_distinct",
             "block_places", "shard_repeat", "shard_use", "shard_cost", "shard_move")  # fmt: skip
    tiled = {n: np.concatenate([getattr(instance, n)] * times) for n in names}
    offsets = {n: ends(getattr(instance, n))
               for n in ("table_options", "option_blocks", "block_shards")}  # fmt: skip
    tables = tuple(f"{t}{i}" for i in range(times) for t in instance.table_names)
    options = instance.option_names * times
    return replace(instance, table_names=tables, option_names=options, **tiled, **offsets)


def test_equal_tables_are_one_in_the_linear_program() -> None:
    """Where tables come three times, on pooled ranks, on kinds of ranks and on machines, the
    program that counts equal tables as one has the same value; the bound follows it, and its
    certificate is accepted."""

    @LOOSE
    @given(instances(max_combinations=2000))
    def each(instance: Instance) -> None:
        threefold = repeated(instance, 3)
        for apart, together in ((False, True), (False, False), (True, False)):
            rows = build_rows(threefold, apart, together)
            upper = np.ones(len(rows.start) - 1)
            upper[: threefold.num_options] = rows.possible
            upper[threefold.num_options :] = np.repeat(rows.slot_times, np.diff(rows.slot_start))
            one, all_ = (Relaxation(rows, 10, alike).solve(upper, 5.0) for alike in (True, False))
            assert one is not None and all_ is not None
            assert one.value == pytest.approx(all_.value, rel=1e-6, abs=1e-6)
            # pins, moves and forbidden options are of the first of three tables
            assert len(classes_of(threefold).members) <= 2 * instance.num_tables
            if one.shares is not None and threefold.num_tables:
                taken = np.add.reduceat(
                    one.shares[: len(rows.possible)], threefold.table_options[:-1]
                )
                assert taken == pytest.approx(np.ones(threefold.num_tables))
        solved = symmetric_lp(threefold)
        if solved is not None and threefold.num_tables:
            assert solved.bound >= solved.value - 1e-6 * max(1.0, abs(solved.value))
            assert certifies(threefold, solved.certificate)

    each()


def test_the_tree_closes_where_the_linear_program_does_not() -> None:
    """At most two of four tables are fast: 2·8 + 2·14 over two ranks; fractions would give 20."""
    solved = symmetric_lp(four_tables(), targets=False)
    certificate = prove(four_tables(), 22)
    assert solved is not None and solved.bound == 20
    assert certificate is not None and certificate.target == 22
    assert len(certificate.nodes) > 1


def test_equal_tables_are_counted() -> None:
    """Of nine tables of 3, five stay in 16, so that four pay 5 each: one split says that, by how
    many stay, and takes many where it asks about one table after the other."""
    tables = [{"stays": at(Where.CLUSTER, 0, net=3), "goes": at(Where.CLUSTER, 5)}] * 9
    instance = built(tables, "total", net=16)
    few, many = (prove(instance, 20, counts=counts) for counts in (True, False))
    assert few is not None and few.target == 20 and certifies(instance, few)
    assert many is None or len(many.nodes) > 10 > 3 == len(few.nodes)


def test_a_tree_may_be_needed_to_see_that_nothing_fits() -> None:
    """Three tables of 13 bytes, two resources of 20: parts of them would fit, whole ones do not."""
    table = {"fast": at(EVERY, 1, hbm=13), "slow": at(EVERY, 1, ddr=13)}
    instance = built([table] * 3, machines=[[0]], hbm=20, ddr=20)
    assert brute_force(instance).objective is None
    certificate = prove_infeasible(instance)
    assert certificate is not None and certifies(instance, certificate)


def three_tables_on(*rooms: int) -> Instance:
    """Three tables of 5 bytes, and machines of one rank each with so many bytes."""
    machines = [[rank] for rank in range(len(rooms))]
    return built([at(ANY, 1, hbm=5)] * 3, machines=machines, hbm=list(rooms))


def test_ranks_that_differ_are_pooled_first() -> None:
    """15 bytes do not fit into 14, whichever rank holds which: nothing finer is built."""
    with patch.object(prove_module, "Tree", wraps=Tree) as trees:
        certificate = prove_infeasible(three_tables_on(6, 8))
    assert certificate is not None and certifies(three_tables_on(6, 8), certificate)
    assert [call.args[0].cells.count for call in trees.call_args_list] == [1]


def test_nothing_is_built_for_time_that_is_over() -> None:
    """12 and 8 bytes hold all three, so nothing closes: without time there is one look, and rows
    that tell machines apart are not built."""
    with patch.object(prove_module, "build_rows", wraps=prove_module.build_rows) as built:
        assert prove_infeasible(three_tables_on(12, 8), seconds=0.0) is None
    assert not any(call.kwargs.get("apart") for call in built.call_args_list)


def test_machines_told_apart() -> None:
    """Three tables of 10, each on one of two whole machines: a split by machine proves 20."""
    instance = built([at(MACHINE, 10)] * 3, machines=MACHINES)
    certificate = prove(instance, 20)
    assert certificate is not None and certificate.target == 20
    assert any("machines" in node for node in certificate.nodes)
    assert certifies(instance, certificate)


def test_nothing_to_place_costs_nothing() -> None:
    """Without tables the bound is 0, for every objective; nothing is infeasible."""
    for objective in Objective:
        instance = built([], objective, [[0]], phases="pq")
        certificate = prove(instance, None)
        assert certificate is not None and certificate.target == 0
        assert certifies(instance, certificate)
        assert prove_infeasible(instance) is None
