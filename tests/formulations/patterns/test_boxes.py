"""Boxes of peaks: bounds as brute force has them, with certificates that the checker accepts."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from formulations import Settings, checker, solve
from formulations.evidence.verify import certifies
from formulations.instance import Instance, Objective, Where
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.instance.file import instance_to_dict
from formulations.patterns import phases, program
from formulations.patterns.boxes import FUNCTIONS, Boxes, left_by, limited
from formulations.patterns.dual import Weights
from formulations.patterns.found import Shared
from formulations.patterns.merged import merged
from formulations.patterns.phases import peaks_to_limit
from formulations.patterns.program import LEVELS, Program
from formulations.proof import judge
from formulations.proof.peaks import peaks_of
from formulations.proof.prove import symmetric_lp
from formulations.result.certificate import Certificate, certificate_to_dict
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import ANY, at, built
from tests.formulations.strategies import instances

SOME = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
ON_RANKS = (Where.EVERY_RANK, Where.ANY_RANK, Where.LIST, Where.ONE_MACHINE)
OVER_RANKS = [objective for objective in Objective if objective != Objective.TOTAL]


PATTERNS = {"few tables": (LEVELS[0], 400), "many tables": (LEVELS[0], 400)}


@pytest.fixture(params={**PATTERNS, "functions": (FUNCTIONS, 60)})
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Level and most boxes, of functions, and of both ways to weigh: with prices of loads where
    tables are many, and without."""
    if request.param == "many tables":
        monkeypatch.setattr(phases, "FEW_TABLES", 0)
    return PATTERNS.get(request.param, (FUNCTIONS, 60))


def boxed(
    instance: Instance, upper: int, level: int = LEVELS[0], most: int = 400
) -> tuple[int, Certificate] | None:
    """The bound of some boxes for plans below a cost, and its certificate; None where boxes do not
    suit the instance, or its linear program proves that there is no such plan."""
    lp = symmetric_lp(instance, upper)
    if lp is None or not instance.num_tables:
        return None
    keep = left_by(instance, lp.certificate, upper)
    if not np.logical_or.reduceat(keep, instance.table_options[:-1]).all():
        return None
    peaks = limited(instance, keep, upper, level)
    if peaks is None:
        return None
    boxes, asked = Boxes(peaks, keep, upper, level), iter(range(most))
    boxes.run(lambda: next(asked, None) is None)
    return boxes.bound, boxes.certificate(lp.certificate.vectors[0])


def accepted(instance: Instance, certificate: Certificate, truth: int) -> None:
    """Checker and judge accept a certificate, and neither with a target above the optimum."""
    forged = replace(certificate, target=truth + 1)
    assert certifies(instance, certificate)
    assert judge.closes(instance, certificate)
    assert not certifies(instance, forged)
    assert not judge.closes(instance, forged)


def columns(rng: Random) -> Instance:
    """Up to five tables whose shards take 0 to 3 units of exchange, and some memory."""
    ranks = rng.choice([2, 3])
    phases, unit = ["compute", "exchange", "backward"], rng.randint(1, 3)
    memory = [("hbm", "rank", rng.randint(8, 30))]
    builder = InstanceBuilder([list(range(ranks))], phases, memory, "step_time")

    def shard() -> Shard:
        compute, units = rng.randint(0, 9), rng.randint(0, 3)
        cost = compute, unit * units + rng.choice([0, 0, 0, 1]), 2 * compute + rng.randint(0, 1)
        return Shard({"hbm": rng.randint(0, 6)}, cost)

    for table in range(rng.randint(1, 5)):
        builder.add_table(f"t{table}")
        for option in range(rng.randint(1, 3)):
            where = rng.choice([Where.ANY_RANK, Where.ANY_RANK, Where.EVERY_RANK])
            shards, more = [shard()], {}
            if where == Where.EVERY_RANK and rng.random() < 0.5:
                shards = [shard() for _ in range(ranks)]
            elif where == Where.ANY_RANK and rng.random() < 0.4:
                more = {"count": 2, "distinct": rng.random() < 0.5}
            builder.add_option(f"o{option}", [Block(where, shards, **more)])
    return builder.build()


def test_bounds_are_true_and_accepted(way: tuple[int, int]) -> None:
    """On 35 random instances no bound exceeds the optimum, many equal it by splits of both kinds,
    some are above what the linear program proves; checker and judge accept every certificate, and
    none with a target above the optimum."""
    exact, raised, splits = 0, 0, set[str]()
    for seed in range(35):
        rng = Random(seed)
        instance = columns(rng)
        truth = brute_force(instance).objective
        found = boxed(instance, truth + rng.randint(0, 3), *way) if truth else None
        lp = symmetric_lp(instance, truth)
        if not truth or found is None or lp is None:
            continue
        bound, certificate = found
        assert bound <= truth
        accepted(instance, certificate, truth)
        exact, raised = exact + (bound == truth), raised + (bound > lp.bound)
        splits |= {key for node in certificate.nodes for key in node} if bound == truth else set()
    assert exact > 15
    assert raised > 5
    assert splits == {"use", "peak", "cuts", "table", "options"}


def alike(rng: Random) -> Instance:
    """Four to six tables of one or two kinds, which have the same options each."""
    ranks = rng.choice([2, 3])
    memory = [("hbm", "rank", rng.randint(8, 30))]
    builder = InstanceBuilder([list(range(ranks))], ["compute", "exchange"], memory, "step_time")
    kinds = [
        [Block(Where.ANY_RANK, [Shard({"hbm": rng.randint(0, 5)},
                                      (rng.randint(1, 9), rng.randint(0, 3)))],
               count=rng.choice([1, 1, 2]), distinct=rng.random() < 0.5)
         for _ in range(rng.randint(1, 2))]
        for _ in range(rng.randint(1, 2))
    ]  # fmt: skip
    for table in range(rng.randint(4, 6)):
        builder.add_table(f"t{table}")
        for option, one in enumerate(kinds[table % len(kinds)]):
            builder.add_option(f"o{option}", [one])
    return builder.build()


@pytest.mark.parametrize("way", PATTERNS, indirect=True)
def test_tables_that_are_alike(way: tuple[int, int]) -> None:
    """On 30 random instances whose tables are alike: bounds are true, many are the optimum; checker
    and judge group the tables themselves and accept every certificate, none above the optimum."""
    exact = fewer = 0
    for seed in range(30):
        rng = Random(seed)
        instance = alike(rng)
        truth = brute_force(instance).objective
        found = boxed(instance, truth + rng.randint(0, 3), *way) if truth else None
        if not truth or found is None:
            continue
        bound, certificate = found
        assert bound <= truth
        accepted(instance, certificate, truth)
        exact += bound == truth
        fewer += len(merged(peaks_of(instance, (0,), (1,), 1), instance.allowed).times) < 3
    assert exact > 20
    assert fewer > 20


def test_no_row_takes_the_checker_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of more steps are not priced: what is left are prices of loads and memory, whose bound
    is true, accepted, and on some instances lower."""
    monkeypatch.setattr(phases, "FEW_TABLES", 0)
    lower = 0
    for seed in range(20):
        instance = columns(Random(seed))
        truth = brute_force(instance).objective
        full = boxed(instance, truth) if truth else None
        if not truth or full is None:
            continue
        with monkeypatch.context() as short:
            short.setattr(program, "MOST_STEPS", 0)
            found = boxed(instance, truth)
        assert found is not None
        assert found[0] <= full[0]
        accepted(instance, found[1], truth)
        lower += found[0] < full[0]
    assert lower > 2


@pytest.mark.parametrize("way", PATTERNS, indirect=True)
@SOME
@given(
    instances(objectives=OVER_RANKS, wheres=ON_RANKS),
    st.integers(0, 3),
)
def test_no_bound_is_above_the_optimum(
    way: tuple[int, int], instance: Instance, above: int
) -> None:
    """Whatever the objective, places, machines and resources."""
    truth = brute_force(instance).objective
    assume(truth)
    found = boxed(instance, truth + above, *way)
    assume(found is not None)
    assert found[0] <= truth
    assert certifies(instance, found[1])


@SOME
@given(instances(objectives=OVER_RANKS), st.integers(0, 3))
def test_no_bound_of_functions_is_above_the_optimum(instance: Instance, above: int) -> None:
    """Whatever the objective, places, machines, resources, fusion groups and limits on moves; and
    the judge agrees with the checker."""
    truth = brute_force(instance).objective
    assume(truth)
    found = boxed(instance, truth + above, FUNCTIONS, 60)
    assume(found is not None)
    assert found[0] <= truth
    assert judge.closes(instance, found[1])
    document = certificate_to_dict(found[1])
    assert checker.Proof(checker.Instance(instance_to_dict(instance)), document).open_case() is None


def test_a_list_of_all_ranks_has_a_floor() -> None:
    """A block that lists all ranks counts for the checker as one on every rank; so it does here."""
    uneven = [Shard({}, (0,)), Shard({"ddr": 6}, (1,)), Shard({"ddr": 3}, (0,))]
    ones = [Shard({}, (1,)), Shard({"ddr": 2}, (1,)), Shard({"ddr": 2}, (1,))]
    a = {"pair": at(ANY, 0, count=2, distinct=True), "uneven": Block(Where.EVERY_RANK, uneven)}
    b = {"twos": at(Where.EVERY_RANK, 2), "ones": Block((0, 1, 2), ones)}
    instance = built([a, b], "step_time", [range(3)], ddr=12)
    read = checker.Instance(instance_to_dict(instance)).tables.values()
    floors = [sum(block.floor[0] for block in o.blocks) for options in read for o in options]
    assert peaks_of(instance, (0,), (), 1).floor.tolist() == floors == [0, 0, 2, 1]


def two_phases() -> Instance:
    """The instance of docs/proof.md: compute and exchange cannot both be even."""
    tables = {name: {"whole": at(ANY, *cost)} for name, cost in
              (("a", (4, 0)), ("b", (2, 2)), ("c", (2, 2)))}  # fmt: skip
    return built(tables, "step_time", phases=["compute", "exchange"])


def test_the_example_of_the_page_is_proved() -> None:
    """The optimum, 8, from boxes; pooled rows prove 6."""
    found = boxed(two_phases(), 8)
    assert found is not None and found[0] == 8
    assert certifies(two_phases(), found[1])


def test_forged_rows_are_refused() -> None:
    """Without its weights a row proves nothing; a higher target is refused whatever else is forged:
    heavier shards, a lower limit, another step, other phases, other cuts."""
    instance = two_phases()
    found = boxed(instance, 8)
    assert found is not None
    good = certificate_to_dict(found[1])
    case = checker.Instance(instance_to_dict(instance))

    def refused(target: int, **changes: Any) -> bool:
        document = deepcopy(good) | {"target": target}
        for row in [row for vector in document["vectors"] for row in vector]:
            if row["row"] == "peaks":
                row |= {key: change(row[key]) for key, change in changes.items()}
        return checker.Proof(case, document).open_case() is not None

    def heavier(weights: list[list[int]]) -> list[list[int]]:
        return [[*place, 9 * weight] for *place, weight in weights]

    assert not refused(8)
    assert refused(8, weights=lambda _: []) and refused(8, each=lambda _: 0)
    assert refused(9)
    assert refused(9, weights=heavier)
    assert refused(9, weights=heavier, most=lambda most: 9 * most)
    assert refused(9, each=lambda each: 3 * each)
    assert refused(9, most=lambda most: most // 4)
    assert refused(9, step=lambda _: 1) and refused(9, step=lambda _: 7)
    assert refused(9, first=lambda _: ["compute"], second=lambda _: ["exchange"])


def test_equal_tables_are_merged() -> None:
    """Three tables, two of them alike: two classes, and two kinds of shards."""
    instance = two_phases()
    peaks = peaks_to_limit(instance, instance.allowed, 8)
    assert peaks is not None
    found = merged(peaks, instance.allowed)
    assert sorted(found.times) == [1, 2]
    assert len(found.first) == len(found.choices) == 2


def test_shares_of_classes_become_whole_tables() -> None:
    """Of five equal tables that take two options in shares of 2/5 and 3/5, two and three take them,
    but none the option that it may not; None where one may take nothing."""
    table = {"o3": at(ANY, 3, 1), "o1": at(ANY, 1, 3)}
    instance = built([table] * 5, "step_time", phases=["compute", "exchange"])
    peaks = peaks_to_limit(instance, instance.allowed, 20)
    assert peaks is not None
    found = Program(peaks, instance.allowed, Shared(20, True))
    shares = np.tile([0.4, 0.6], 5)
    able = instance.allowed.copy()
    able[[1, 3]] = False  # the second option of the first two tables
    chosen = found.whole(shares, able)
    assert chosen is not None
    assert chosen.tolist() == [0, 2, 5, 7, 9]
    able[0] = False
    assert found.whole(shares, able) is None


def test_phases_that_are_multiples_are_one() -> None:
    """Compute and backward, twice as much but for rounding, are limited together; exchange goes in
    units of 500."""
    costs = (1000, 500, 2001, 0), (3000, 1001, 6000, 0), (7000, 500, 14001, 0)
    instance = built([at(ANY, *cost) for cost in costs], "step_time", phases="pqrs")
    peaks = peaks_to_limit(instance, instance.allowed, 30_000)
    assert peaks is not None
    assert (peaks.first, peaks.second, peaks.step) == ((0, 2, 3), (1,), 500)
    assert peaks.steps.tolist() == [1, 2, 1]
    assert peaks.load.tolist() == [3001, 9000, 21001]


def large_shards() -> Instance:
    """Tables with shards of 7, 5 or 4, one or two of which fill a rank, or halves on two ranks."""
    tables = [{"whole": at(ANY, cost, hbm=1),
               "halves": at(ANY, cost - 2, hbm=1, count=2, distinct=True)}
              for cost in (7, 7, 7, 5, 4)]  # fmt: skip
    return built(tables, machines=[range(3)], phases=["step"], hbm=100)


def test_large_shards_on_the_busiest_rank() -> None:
    """The optimum, 11, from boxes of its one peak: no two shards of 7 lie together below 14."""
    instance = large_shards()
    found = boxed(instance, 11)
    assert brute_force(instance).objective == 11
    assert found is not None and found[0] == 11
    accepted(instance, found[1], 11)


def test_many_tables_have_boxes_of_two_peaks_alone() -> None:
    """Of the busiest rank there are boxes up to ``MOST_ALONE`` tables, with phases above that."""
    for more, objective, there in ((0, "busiest_rank", True), (1, "busiest_rank", False),
                                   (1, "step_time", True)):  # fmt: skip
        instance = built([at(ANY, 3)] * (phases.MOST_ALONE + more), objective)
        assert (peaks_to_limit(instance, instance.allowed, 300) is not None) is there


@pytest.mark.parametrize("make", [two_phases, large_shards])
def test_auto_certifies_by_boxes(make: Callable[[], Instance]) -> None:
    """A whole solve by ``auto`` is certified optimal, at brute force's cost."""
    outcome = solve(make(), "auto", Settings(time_limit=10.0))
    assert outcome.objective == brute_force(make()).objective == outcome.certified_bound


def test_a_weight_just_below_nothing_is_nothing() -> None:
    """A solver may leave a weight below 0 by its tolerance, which rounds to −1 at a large scale;
    a certificate has no such weights."""
    instance = columns(Random(3))
    best = brute_force(instance)
    upper = 2 * (best.objective or 1)
    keep = instance.allowed
    peaks = peaks_to_limit(instance, keep, upper)
    assert peaks is not None
    boxes = Boxes(peaks, keep, upper)
    boxes.run(iter([False, True, True]).__next__)
    program = boxes._program(keep)
    kinds = program._kinds
    priced, _ = program._price(
        Weights(np.full(kinds, -1.0), np.zeros(3), np.zeros(len(instance.resources))), 1
    )
    assert (priced.weight >= 0).all()
