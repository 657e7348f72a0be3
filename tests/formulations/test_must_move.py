"""What must move at least: certified, and a limit below it is answered at once."""

import gzip
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from random import Random

import highspy
import numpy as np
import pytest
from hypothesis import given

from formulations import (
    Instance,
    InstanceBuilder,
    Placement,
    Settings,
    Where,
    checker,
    fewest,
    must_move,
    neighbourhoods,
    solve,
)
from formulations.clock import Clock
from formulations.errors import InstanceError
from formulations.evidence.verify import verify
from formulations.instance import Current
from formulations.instance.build import Block, Shard
from formulations.instance.file import instance_to_dict
from formulations.proof.prove import prove
from formulations.result.certificate import certificate_to_dict
from formulations.result.check import check
from formulations.result.must_move import Counted, forced_of
from formulations.result.outcome import Status
from formulations.result.outcome_file import outcome_from_dict, outcome_to_dict
from formulations.staying import as_it_is, flattened, pooled_question, whole_question
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import ANY, EVERY, INSIDE, at, built
from tests.formulations.fuzz.cross import CELLS, Moves, draw
from tests.formulations.search.test_near import tables_on
from tests.formulations.test_priced import moving

QUICK = Settings(time_limit=20, workers=1)


@pytest.mark.parametrize("formulation", ["auto", "cpsat", "mip", "scale"])
def test_a_limit_that_is_too_small_is_answered_with_what_must_move(formulation: str) -> None:
    """Rank 0 holds 11 of 9, so that the table of 2 moves at least; the answer holds as a file."""
    instance, there = tables_on([0, 0, 0, 1], [5, 4, 2, 3], 9)
    instance = replace(instance, max_moved_bytes=1)
    outcome = solve(instance, formulation, replace(QUICK, hint=there))
    assert outcome.status == Status.INFEASIBLE
    assert [each["least"] for each in outcome.detail["must_move"]] == [2]
    assert outcome.detail["would_move"] == {"tables": 1, "bytes": 2}
    again = outcome_from_dict(instance, outcome_to_dict(instance, outcome))
    judged = verify(instance, again)
    assert judged.ok and not [claim for claim in judged.claims if claim.ok is None]


def test_a_forged_least_is_refuted() -> None:
    """A certificate proves what it proves: not one byte more, and not on another instance."""
    instance, there = tables_on([0, 0, 0, 1], [5, 4, 2, 3], 9)
    instance = replace(instance, max_moved_bytes=1)
    outcome = solve(instance, "cpsat", replace(QUICK, hint=there))
    detail = {**outcome.detail, "must_move": [{**outcome.detail["must_move"][0], "least": 3}]}
    assert not verify(instance, outcome.with_(detail=detail)).ok
    roomy = replace(instance.resources[0], capacity=np.full(2, 11))
    assert not verify(replace(instance, resources=(roomy,)), outcome).ok
    beyond = {**outcome.detail["must_move"][0], "tables": [0, 9]}
    with pytest.raises(InstanceError, match="names tables that are not there"):
        verify(instance, outcome.with_(detail={"must_move": [beyond]}))
    other = {**beyond, "apart": "yes"}
    with pytest.raises(InstanceError, match="apart must be true, false or a list, found 'yes'"):
        forced_of({"must_move": [other]})


def test_within_a_limit_that_is_enough_there_is_a_plan() -> None:
    """Two bytes must move and may; the outcome says so too."""
    instance, there = tables_on([0, 0, 0, 1], [5, 4, 2, 3], 9)
    instance = replace(instance, max_moved_bytes=2)
    outcome = solve(instance, "cpsat", replace(QUICK, hint=there))
    assert outcome.placement is not None and verify(instance, outcome).ok
    assert [each["least"] for each in outcome.detail["must_move"]] == [2]


@given(moving())
def test_no_plan_moves_less(case: tuple[Instance, Placement]) -> None:
    """The least is never more than what a plan needs, in bytes and in tables, and moves that
    nothing forces count nothing."""
    instance, _ = case
    tight = [replace(r, capacity=r.capacity - r.capacity // 3) for r in instance.resources]
    instance = replace(instance, resources=tuple(tight))
    for counted in Counted:
        question = pooled_question(instance, counted).question
        least = brute_force(question).objective if question.num_tables else 0
        if least is None or not instance.current:
            assert least is not None or brute_force(instance).objective is None
            continue
        if least:
            limit = {f"max_moved_{counted}": least - 1}
            assert brute_force(replace(instance, **limit)).objective is None


def drawn(count: int, cut: int) -> Iterator[Instance]:
    """Instances of every kind with a plan in production and no limit yet, with so many thirds of
    their capacities."""
    cells = [cell for cell in CELLS if cell.moves != Moves.NONE]
    for number in range(count):
        instance = draw(cells[number * 101 % len(cells)], number)
        tight = [replace(r, capacity=r.capacity * cut // 3) for r in instance.resources]
        yield replace(instance, resources=tuple(tight), max_moved_tables=None, max_moved_bytes=None)


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_whatever_lies_where_no_plan_moves_less(cut: int) -> None:
    """Of every kind of place, scope, fusion and pin; the pooled question gives no more than the
    whole one about its tables, that no more than the one about all, and that no more than what must
    move, which is what it gives where all ways to lie are apart."""
    exact = 0
    for instance, counted in product(drawn(40, cut), Counted):
        tables, pooled = range(instance.num_tables), pooled_question(instance, counted)
        most = brute_force(whole_question(instance, counted, tables)).objective
        least = [brute_force(pooled.question).objective if pooled.tables else 0]
        if pooled.tables:
            least.append(brute_force(whole_question(instance, counted, pooled.tables)).objective)
        apart = whole_question(instance, counted, tables, apart=True)
        true = brute_force(apart).objective
        assert brute_force(flattened(apart).question).objective == true
        if most is None or true is None:
            assert brute_force(instance).objective is None
            continue
        rising = [*least, most, true]
        assert sorted(rising) == rising
        short = replace(instance, **{f"max_moved_{counted}": true - 1}) if true else None
        assert short is None or brute_force(short).objective is None
        within = replace(instance, **{f"max_moved_{counted}": true})
        assert brute_force(within).objective is not None
        exact += true > 0
    assert exact > 5


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_every_limit_that_is_too_small_is_answered_and_certified(cut: int) -> None:
    """With the least that must move, wherever a plan exists without the limit: also where shards of
    a block differ and choose ranks, at fusion levels and where pins name ranks."""
    tried = several = 0
    for instance, counted in product(drawn(40, cut), Counted):
        apart = whole_question(instance, counted, range(instance.num_tables), apart=True)
        if not (least := brute_force(apart).objective):
            continue
        for limit in {0, least - 1}:
            short = replace(instance, **{f"max_moved_{counted}": limit})
            outcome = solve(short, "cpsat", Settings(work_limit=5, workers=1))
            assert outcome.status == Status.INFEASIBLE and verify(short, outcome).ok
            assert [each["least"] for each in outcome.detail["must_move"]] == [least]
        tried += 1
        several += bool((np.diff(instance.block_shards) > 1).any())
    assert tried > 5 and several


@pytest.mark.parametrize(("small", "ways"), [(must_move.SMALL, 0), (must_move.SMALL, 8), (0, 0)])
def test_where_there_are_too_many_ways_to_lie_both_numbers_are_told(
    small: int, ways: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where ways to lie cannot be told apart, or the whole question cannot be asked: less than what
    is certified ends infeasible, and what was found to suffice does; the true least lies between
    them, and so does every answer that stays open."""
    monkeypatch.setattr(must_move, "WAYS", ways)
    monkeypatch.setattr(must_move, "SMALL", small)
    tried = met = 0
    for instance, counted in product(drawn(40, 2), Counted):
        apart = whole_question(instance, counted, range(instance.num_tables), apart=True)
        if not (least := brute_force(apart).objective):
            continue
        name, settings = f"max_moved_{counted}", Settings(work_limit=5, workers=1)
        short = replace(instance, **{name: 0})
        outcome = solve(short, "cpsat", settings)
        assert outcome.placement is None and verify(short, outcome).ok
        known = [each["least"] for each in outcome.detail.get("must_move", [])]
        assert max(known, default=0) <= least
        if known:
            below = replace(instance, **{name: known[0] - 1})
            answer = solve(below, "cpsat", settings)
            assert answer.status == Status.INFEASIBLE and verify(below, answer).ok
        if "would_move" not in outcome.detail:
            continue  # the repair found no plan at all
        found = outcome.detail["would_move"][counted]
        assert least <= found
        enough = replace(instance, **{name: found})
        assert solve(enough, "cpsat", settings).placement is not None
        tried, met = tried + 1, met + (known == [found])
    assert tried > 5 and met


def test_what_must_go_is_counted_exactly() -> None:
    """Of equal tables, of several kinds, on two ranks that are too full: no plan of the pooled
    question costs less, and the certificate in its terms and in those of the whole one closes."""
    draw, several = Random(3), 0
    for _ in range(40):
        kinds = [(draw.randrange(1, 9), draw.randrange(1, 9)) for _ in range(3)]
        tables = [draw.choice(kinds) for _ in range(draw.randrange(4, 9))]
        ranks = [draw.randrange(2) for _ in tables]
        options = [{"o": at(ANY, 1, hbm=use, move_bytes=size)} for use, size in tables]
        current = [Current(t, t, ((rank,),)) for t, rank in enumerate(ranks)]
        held = [sum(u for (u, _), r in zip(tables, ranks, strict=True) if r == k) for k in (0, 1)]
        instance = built(
            options, "total", [range(3)], hbm=max(8, max(held) * 2 // 3), current=current,
            max_moved_bytes=0,
        )  # fmt: skip
        forced = must_move._pooled(instance, Counted.BYTES, Clock(Settings(work_limit=5)))
        pooled = pooled_question(instance, Counted.BYTES)
        best = brute_force(pooled.question).objective if pooled.tables else 0
        assert best is None or best == (forced.least if forced else 0)
        if forced is None:
            continue
        outcome = solve(instance, "cpsat", Settings(work_limit=5, workers=1))
        detail = {"must_move": [forced.to_dict()]}
        judged = verify(instance, outcome.with_(detail={**outcome.detail, **detail}))
        assert [claim.ok for claim in judged.claims if "must move" in claim.name] == [True]
        text = gzip.decompress(b64decode(forced.certificate)).decode()
        several += "counted" in text
    assert several > 5


@pytest.mark.parametrize("machines", [[range(3)], [range(2), range(2, 4)]])
def test_only_what_is_equal_in_the_whole_question_is_counted(machines: list[range]) -> None:
    """Tables that use the same of every place, but of which some choose a rank and others one of a
    single machine: a checker counts neither with the other, and accepts what is proved."""
    several = 0
    for seed in range(12):
        draw = Random(seed)
        where = [draw.choice([ANY, INSIDE]) for _ in range(draw.randrange(8, 16))]
        ranks, size = [draw.randrange(2) for _ in where], draw.choice([2, 3, 5])
        most = size * max(ranks.count(0), ranks.count(1))
        instance = built(
            [at(kind, 1, hbm=size) for kind in where], "total", machines,
            hbm=max(size + 1, most * draw.choice([2, 3]) // 4), max_moved_tables=0,
            current=[Current(table, table, ((rank,),)) for table, rank in enumerate(ranks)],
        )  # fmt: skip
        question = whole_question(instance, Counted.TABLES, range(len(where)), ())
        for pooled in (flattened(question), as_it_is(question)):
            proof = prove(pooled.question, len(where), counts=True)
            assert proof is not None
            whole = certificate_to_dict(pooled.whole(proof))
            told = checker.Proof(checker.Instance(instance_to_dict(question)), whole)
            assert told.open_case() is None
            several += "counted" in str(whole["nodes"])
    assert several


def test_two_cases_that_cost_the_same_are_both_looked_at() -> None:
    """Three ranks hold 29, 32 and 38 of 25, so that a table leaves each; the search for that met
    two open cases of one split at the same cost, and ended with an error."""
    sizes, ranks = [8, 3, 24, 14, 7, 25, 18], [0, 0, 2, 2, 1, 1, 0]
    instance, _ = tables_on([*ranks, 3], [*sizes, 1], 25)
    instance = replace(instance, max_moved_tables=0)
    forced = must_move._pooled(instance, Counted.TABLES, Clock(Settings(work_limit=5)))
    assert forced is not None and forced.least == 3


def test_without_a_solution_nothing_false_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where HiGHS ends without one, what must go is proved less far, or not at all."""
    tables = [{"o": at(ANY, 1, hbm=3, move_bytes=5)}] * 6
    current = [Current(t, t, ((t % 2,),)) for t in range(6)]
    instance = built(tables, "total", [range(3)], hbm=6, current=current, max_moved_bytes=0)
    for least in (10, 0):
        forced = must_move._pooled(instance, Counted.BYTES, Clock(Settings(work_limit=5)))
        assert (forced.least if forced else 0) == least
        monkeypatch.setattr(highspy.Highs, "getSolution", lambda _: highspy.HighsSolution())


@pytest.mark.parametrize("counted", Counted)
def test_parts_of_a_plan_lead_to_one_that_moves_least(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty tables on six ranks, of which several are too full: neighbourhoods of two ranks or more
    come to what the whole model finds, from a plan that moves every table."""
    draw, settings = Random(1), Settings(work_limit=60, workers=1)
    ranks = [draw.randrange(6) for _ in range(40)]
    sizes = [draw.randrange(3, 40) for _ in ranks]
    instance, _ = tables_on(ranks, sizes, round(1.1 * sum(sizes) / 6))
    clock = Clock(settings)
    whole = fewest.fewest(instance, counted, None, 0, settings, clock, 20)
    assert whole is not None
    far = Placement(whole.options, [[(own + 1) % 6 for own in table] for table in whole.ranks])
    monkeypatch.setattr(neighbourhoods, "COLUMNS", 120)
    near = fewest.fewest(instance, counted, far, 0, settings, clock, 40)
    assert near is not None and check(instance, near).feasible
    values = [fewest.moves_of(instance, counted, plan) for plan in (far, near, whole)]
    assert values[0] > 2 * values[1] and values[1] <= 1.1 * values[2]


def test_where_what_goes_has_no_room_more_must_move() -> None:
    """Rank 0 holds 11 of 10, rank 1 has 1 to spare, too little for the table of 2: 5 and 4 swap."""
    instance, there = tables_on([0, 0, 0, 1, 1], [5, 4, 2, 5, 4], 10)
    instance = replace(instance, max_moved_bytes=8)
    outcome = solve(instance, "auto", replace(QUICK, hint=there))
    assert outcome.status == Status.INFEASIBLE
    assert [each["least"] for each in outcome.detail["must_move"]] == [9]
    assert outcome.detail["would_move"]["bytes"] == 9
    lines = list(checker.check(instance_to_dict(instance), outcome_to_dict(instance, outcome)))
    assert lines[-2:] == ["moves: at least 9 bytes must move", "verdict: certified infeasible"]


def test_where_ways_are_too_many_what_goes_is_placed_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tables of 6 and 5 on a rank of 10: the other rank, of 4, is open to neither, so that one
    leaves both, which moves 50 bytes."""
    monkeypatch.setattr(must_move, "WAYS", 0)
    tables = [
        {"whole": at(ANY, 1, hbm=size, move_bytes=size), "host": at(ANY, 1, move_bytes=50)}
        for size in (6, 5)
    ]
    current = [Current(table, 2 * table, ((0,),)) for table in range(2)]
    instance = built(tables, "total", hbm=[10, 4], current=current, max_moved_bytes=49)
    outcome = solve(instance, "cpsat", QUICK)
    assert outcome.status == Status.INFEASIBLE and verify(instance, outcome).ok
    assert [each["least"] for each in outcome.detail["must_move"]] == [50]
    lines = list(checker.check(instance_to_dict(instance), outcome_to_dict(instance, outcome)))
    assert lines[-2:] == ["moves: at least 50 bytes must move", "verdict: certified infeasible"]


def test_the_ways_to_lie_of_what_goes_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table leaves the host for 8 of the HBM: two ranks have 6 left each, so that a small one
    changes ranks too. A certificate that does not tell the large one's ranks apart says 1."""
    monkeypatch.setattr(must_move, "WAYS", 4)
    large = {"host": at(ANY, 1, ddr=5), "hbm": at(ANY, 1, hbm=8)}
    tables = [large, *({"o": at(ANY, 1, hbm=2)} for _ in range(4))]
    current = [Current(0, 0, ((0,),)), *(Current(t, t + 1, ((t % 2,),)) for t in range(1, 5))]
    instance = built(tables, "total", hbm=10, ddr=4, current=current, max_moved_tables=1)
    outcome = solve(instance, "cpsat", QUICK)
    assert outcome.status == Status.INFEASIBLE and verify(instance, outcome).ok
    (must,) = outcome.detail["must_move"]
    assert (must["least"], must["apart"]) == (2, [0])
    document, told = instance_to_dict(instance), outcome_to_dict(instance, outcome)
    assert list(checker.check(document, told))[-1] == "verdict: certified infeasible"
    for apart in (False, [1], []):
        must["apart"] = apart
        with pytest.raises((checker.Refuted, checker.Unreadable)):
            list(checker.check(document, outcome_to_dict(instance, outcome)))


def test_what_no_place_can_hold_is_told_apart_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """24 leave a host of 20 for two shards of 6; each of three ranks of 10 holds three tables of 2,
    of which one leaves where a shard comes: 3 move. Both shards on one rank are too much."""
    monkeypatch.setattr(must_move, "WAYS", 9)
    large = {"host": at(ANY, 1, ddr=24), "two": at(ANY, 1, hbm=6, count=2)}
    tables = [*({"o": at(ANY, 1, hbm=2)} for _ in range(9)), large]
    current = [*(Current(t, t, ((t % 3,),)) for t in range(9)), Current(9, 9, ((0,),))]
    instance = built(
        tables, "total", [range(3)], hbm=10, ddr=20, current=current, max_moved_tables=2
    )  # fmt: skip
    outcome = solve(instance, "cpsat", QUICK)
    assert outcome.status == Status.INFEASIBLE and verify(instance, outcome).ok
    (must,) = outcome.detail["must_move"]
    assert (must["least"], must["apart"]) == (3, [9])
    document, told = instance_to_dict(instance), outcome_to_dict(instance, outcome)
    assert list(checker.check(document, told))[-1] == "verdict: certified infeasible"


def test_what_can_only_go_to_every_rank_leaves_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rank 0 holds 8 of 6: the table on every rank would leave 4 of its 5 there, as its third
    option fits nowhere, so that one of the small ones moves too."""
    large = {"kept": at(EVERY, 1, hbm=5), "less": at(EVERY, 1, hbm=4), "whole": at(ANY, 1, hbm=7)}
    tables = [large, *({"o": at(ANY, 1, hbm=1)} for _ in range(3))]
    current = [Current(0, 0, ((0, 1),)), *(Current(t, t + 2, ((0,),)) for t in range(1, 4))]
    instance = built(tables, "total", hbm=6, current=current, max_moved_tables=1)
    assert brute_force(pooled_question(instance, Counted.TABLES).question).objective == 2
    monkeypatch.setattr(must_move, "SMALL", 0)
    outcome = solve(instance, "cpsat", QUICK)
    assert outcome.status == Status.INFEASIBLE and verify(instance, outcome).ok
    assert [each["least"] for each in outcome.detail["must_move"]] == [2]
    assert outcome.detail["would_move"]["tables"] == 2


def test_a_table_that_is_not_where_its_option_puts_it_may_move_there() -> None:
    """It was on rank 0 alone, at an option for every rank: it moves 2 bytes there, not 5."""
    builder = InstanceBuilder([[0, 1]], ["time"], [("hbm", "rank", 9)], "step_time")
    builder.add_table("t")
    for name, where, size in (("everywhere", Where.EVERY_RANK, 1), ("whole", Where.ANY_RANK, 5)):
        builder.add_option(name, [Block(where, [Shard({"hbm": size}, [1], move_bytes=size)])])
    instance = builder.build(current=[Current(0, 0, ((0,),))], max_moved_bytes=2)
    outcome = solve(instance, "cpsat", QUICK)
    assert [each["least"] for each in outcome.detail["must_move"]] == [2]
    assert outcome.status == Status.OPTIMAL
    short = solve(replace(instance, max_moved_bytes=1), "cpsat", QUICK)
    assert short.status == Status.INFEASIBLE


def test_shards_that_differ_may_change_places_but_not_all_at_once() -> None:
    """Three tables have a shard of 5 and one of 1 on ranks 0 and 1, which hold 9 each: whichever
    way they lie, one holds 11."""
    builder = InstanceBuilder([[0, 1, 2, 3]], ["time"], [("hbm", "rank", 9)], "step_time")
    shards = [Shard({"hbm": size}, [1], move_bytes=size) for size in (5, 1)]
    for name in "abc":
        builder.add_table(name)
        builder.add_option("two", [Block(Where.ANY_RANK, shards, count=2, distinct=True)])
    current = [Current(table, table, ((0, 1),)) for table in range(3)]
    instance = builder.build(current=current, max_moved_bytes=5)
    outcome = solve(instance, "cpsat", QUICK)
    assert outcome.status == Status.INFEASIBLE and verify(instance, outcome).ok
    assert [each["least"] for each in outcome.detail["must_move"]] == [6]
    lines = list(checker.check(instance_to_dict(instance), outcome_to_dict(instance, outcome)))
    assert lines[-2:] == ["moves: at least 6 bytes must move", "verdict: certified infeasible"]
    assert solve(replace(instance, max_moved_bytes=6), "cpsat", QUICK).placement is not None
