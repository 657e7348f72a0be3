"""What the first moves from today's plan gain: hand-made plans, and the steps as plans."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from formulations import Placement
from milp_planner import Cluster, Model, Plan, explain, plan, report
from milp_planner.drawing.page import sentence
from milp_planner.errors import BadInput
from milp_planner.features.explain.answers import Answers
from milp_planner.features.moves.way import MovesInfo, moves, moves_of, notes
from milp_planner.inputs.interconnect import Interconnect
from milp_planner.request.questions import Asked
from tests.formulations.examples import ANY, EVERY, at, built, placed


def whole(*ranks: int) -> Placement:
    """Every table is whole and on the given rank."""
    return placed(range(len(ranks)), *[[rank] for rank in ranks])


def test_the_first_moves_bring_most() -> None:
    """Costs 8, 4 and 1 on one rank: the first of two moves gains 4 of 5 and moves its 4 bytes."""
    instance = built([at(ANY, cost, hbm=2, move_bytes=cost) for cost in (8, 4, 1)], hbm=10)
    info, steps = moves_of(instance, whole(0, 0, 0), whole(0, 1, 1))
    assert (info.before, info.after, info.fits) == (13, 8, True)
    assert [(p.moves, p.tables, p.bytes, p.objective) for p in info.points] == [
        (0, 0, 0, 13), (1, 1, 4, 9), (2, 2, 5, 8)
    ]  # fmt: skip
    assert [info.share(point) for point in info.told] == [0.8, 1.0]
    assert len(steps) == 2


def moved(before: tuple[int, ...], after: tuple[int, ...], unit: str = "ps") -> MovesInfo:
    """Tables that cost 3 ns and move 4,000 bytes each, over a link of 400 GB/s: 10 ns per table."""
    instance = replace(built([at(ANY, 3_000, move_bytes=4_000)] * len(before)), time_unit=unit)
    link = Interconnect.model_validate({"intra_machine": "400GB/s"})
    return moves_of(instance, whole(*before), whole(*after), link)[0]


@pytest.mark.parametrize(
    ("before", "after", "seconds", "steps", "said"),
    [
        ((0, 0), (0, 1), 10e-9, 4, "10 ns, paid back after at least 4 steps"),  # 10,000 / 3,000
        ((0,) * 4, (0, 0, 1, 1), 20e-9, 4, "paid back after at least 4 steps"),  # 20,000 / 6,000
        ((0, 1), (1, 0), 10e-9, None, "never pays"),  # each receives one; nothing is gained
        ((0, 1), (1, 1), 10e-9, None, "never pays"),
        ((0, 1), (0, 1), 0.0, None, ""),
    ],
)
def test_a_move_pays_when_its_time_is_gained_back(
    before: tuple[int, ...], after: tuple[int, ...], seconds: float, steps: int | None, said: str
) -> None:
    """The rank that receives most determines the time, which is divided by the gain per step."""
    info = moved(before, after)
    assert (info.move_seconds, info.pays_after_steps) == (pytest.approx(seconds), steps)
    assert said in " ".join(notes(info)) and bool(said) == bool(info.tables)
    assert info.to_dict()["pays_after_steps"] == steps
    tables = [(t.table, t.before, t.ranks_before, t.ranks_after) for t in info.tables]
    pairs = enumerate(zip(before, after, strict=True))
    assert tables == [(f"t{i}", "o", (a,), (b,)) for i, (a, b) in pairs if a != b]


def test_without_a_link_or_picoseconds_no_payback_is_known() -> None:
    """Without a link, moving bytes has no time; in another unit, a step has none."""
    info, _ = moves_of(built([at(ANY, 5, move_bytes=1)] * 2), whole(0, 0), whole(0, 1))
    assert (info.move_seconds, info.pays_after_steps) == (None, None)
    assert list(notes(info)) == ["how long the move takes is not known"]
    assert moved((0, 0), (0, 1), "units").pays_after_steps is None


def test_one_step_is_no_plural() -> None:
    """A move that a single step pays for."""
    said = " ".join(notes(replace(moved((0, 0), (0, 1)), pays_after_steps=1)))
    assert said.endswith("paid back after at least 1 step")


def test_a_rank_receives_what_it_does_not_hold_yet() -> None:
    """From a quarter of a table to all of it: three quarters, not nothing because it holds some."""
    table = {"cut": at(EVERY, 9, move_bytes=25), "whole": at(ANY, 1, move_bytes=100)}
    link = Interconnect.model_validate({"intra_machine": "1B/s"})
    ends = placed([0], range(4)), placed([1], [2])
    info, _ = moves_of(built([table], machines=[range(4)]), *ends, link)
    assert (info.receives, info.move_seconds) == (75, 75.0)


def test_what_cannot_move_alone_is_not_in_the_time() -> None:
    """The line says that it takes a restart on top."""
    info = moved((0, 0), (0, 1))
    assert info.way is not None
    stuck = replace(info, way=replace(info.way, stuck=("t1",)))
    assert "take a restart on top" in " ".join(notes(stuck))
    assert "restart" not in " ".join(notes(info))


def test_a_rank_receives_nothing_of_what_it_holds() -> None:
    """With another option on the same rank, the bytes change memory but cross no link."""
    table = {name: at(ANY, cost, move_bytes=9) for name, cost in (("slow", 5), ("fast", 1))}
    info, _ = moves_of(built([table], machines=[[0]]), placed([0], [0]), placed([1], [0]))
    assert (info.move_seconds, info.pays_after_steps) == (0.0, 0)
    assert [(t.before, t.after) for t in info.tables] == [("slow", "fast")]
    assert list(notes(info)) == ["no rank receives bytes that it does not already hold"]


def test_there_is_no_way_from_a_plan_that_does_not_fit() -> None:
    """Today's plan needs 12 of 10 bytes: the answer says so, with both objectives."""
    info, steps = moves_of(built([at(ANY, 5, hbm=6)] * 2, hbm=10), whole(0, 0), whole(0, 1))
    assert (info.fits, info.way, info.before, info.after, steps) == (False, None, 10, 5, [])


MODEL = {
    "name": "m",
    "workload": {"batch_per_rank": 256},
    "tables": [{"name": f"t{i}", "rows": 10_000 * (i + 1), "dim": 64} for i in range(4)],
}
CLUSTER = {
    "name": "two", "profile": "h100", "machines": 1, "ranks_per_machine": 2, "hbm": "1GiB",
    "ddr": "1GiB", "interconnect": {"intra_machine": "450GB/s"},
}  # fmt: skip


@cache
def best() -> Plan:
    """The best plan of these."""
    return plan(Model.from_dict(MODEL), Cluster.from_dict(CLUSTER), time_limit=5)


def today(folder: Path) -> Path:
    """A CSV with every table on rank 0."""
    lines = [f"t{i},HBM_ONLY,table_wise,0" for i in range(4)]
    path = folder / "today.csv"
    path.write_text("\n".join(["table,mode,sharding_type,ranks", *lines]) + "\n")
    return path


def test_steps_are_plans_of_their_own(tmp_path: Path) -> None:
    """Each step is checked and states its objective; the last is the plan asked about."""
    info, way = moves(best(), today(tmp_path))
    steps = list(way)
    assert [step.outcome.objective for step in steps] == [p.objective for p in info.points[1:]]
    assert steps[-1].outcome.objective == best().outcome.objective
    answers = explain(best(), "moves", asked=Asked(today=today(tmp_path)), time_limit=5)
    assert answers.moves == info
    page = report(best(), None, Answers(moves=info))
    assert "From today&#39;s plan" in page or "From today's plan" in page
    assert all(sentence(note) in page for note in notes(info)) and "Where each is before" in page


def test_moves_need_todays_plan() -> None:
    """Without it, one sentence names the option."""
    with pytest.raises(BadInput, match="--start"):
        explain(best(), "moves")
    with pytest.raises(BadInput, match="no longer offers"):
        moves(replace(best(), tables=best().tables[:-1]), best())
