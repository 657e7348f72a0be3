"""The page as text: self-contained, complete, small enough.

What differs between two plans.
"""

import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from typing import Any

import pytest

from formulations.settings import TracePoint
from milp_planner import Cluster, Model, plan
from milp_planner.drawing.units import show_cost
from milp_planner.features.explain.answers import Answers
from milp_planner.features.explain.frontier_draw import frontier_svg
from milp_planner.features.explain.page import draw_trace
from milp_planner.features.explain.swap import Shortage
from milp_planner.features.explain.why import Alternative, TableWhy, WhyInfo
from milp_planner.features.plan.memory import memory_of
from milp_planner.features.plan.verdict import VerdictInfo
from milp_planner.features.report.diff import MOST_TABLES, change_of, diff_of_plans
from milp_planner.features.report.page import ReportInfo, render, report_of, strip
from milp_planner.plans.placement import Plan
from tests.milp_planner.features import plans
from tests.milp_planner.features.example import example, placement
from tests.milp_planner.features.plan.test_ranks import drawn


class _Tags(HTMLParser):
    """Counts tags, checks that they close, and collects references."""

    VOID = frozenset({"meta", "link", "input", "rect", "circle", "polyline", "br"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.refers: list[str] = []
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        self.refers += [v or "" for n, v in attrs if n in ("src", "href", "data", "action")]
        self.ids += [v or "" for n, v in attrs if n == "id"]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if tag in self.VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


@pytest.fixture(scope="module")
def info() -> ReportInfo:
    """A small plan with explanations."""
    return plans.explained()


def test_the_page_is_well_formed_and_refers_only_to_itself(info: ReportInfo) -> None:
    """Tags close, ids are unique, every link is an anchor of the page."""
    tags = _Tags(render(info))
    assert not tags.open
    assert not tags.wrong
    assert len(tags.ids) == len(set(tags.ids))
    anchors = [r for r in tags.refers if r != "data:,"]
    assert all(a.startswith("#") and a[1:] in tags.ids for a in anchors)
    assert "http" not in re.sub(r"http-equiv", "", render(info))


def test_it_shows_the_figures_of_the_info(info: ReportInfo) -> None:
    """The verdict, every table, every section asked for."""
    text = render(info)
    assert show_cost(info.verdict.objective, "ps") in text
    for table in ("users", "items", "clicks", "views"):
        assert f"<td>{table}</td>" in text
    for section in ("memory", "time", "modes", "frontier", "smallest", "replan",
                    "sensitivity", "why", "tables"):  # fmt: skip
        assert f'<h2 id="{section}">' in text, section


def _proof(info: VerdictInfo) -> list[tuple[str, str]]:
    """The strip's facts about certificates and proofs."""
    names = ("certified", "certified gap", "certified bound", "gap", "proved", "proved bound")
    return [(fact.label, fact.value) for fact in strip(info) if fact.label in names]


def test_what_is_certified_comes_first(info: ReportInfo) -> None:
    """The certified gap and bound come first, then a solver's word if it says more."""
    proved = replace(info.verdict, objective=10**9, bound=10**9, gap=0.0, time_unit="ps")
    half = replace(proved, certified_bound=5 * 10**8, certified_gap=0.5)
    assert _proof(half) == [
        ("certified gap", "50%"), ("certified bound", "500 µs"), ("gap", "0"),
        ("proved bound", "1 ms"),
    ]  # fmt: skip
    whole = replace(proved, certified_bound=10**9, certified_gap=0.0)
    assert _proof(whole) == [("certified gap", "0"), ("certified bound", "1 ms")]
    nothing = replace(proved, certified_bound=None, certified_gap=None)
    assert [label for label, _ in _proof(nothing)] == ["certified gap", "gap", "proved bound"]
    none = replace(nothing, status="infeasible", objective=None, bound=None, gap=None)
    assert _proof(none) == [("certified", "nothing"), ("proved", "no plan exists")]
    assert _proof(replace(none, certified_infeasible=True)) == [("certified", "no plan exists")]


def test_two_gaps_have_two_captions(info: ReportInfo) -> None:
    """Each gap's caption says on whose word it is, since one caption would not fit both."""
    open_ = replace(
        info.verdict, objective=10**9, time_unit="ps", status="feasible", bound=9 * 10**8, gap=0.1,
        bound_method="cpsat pooled", certified_bound=8 * 10**8, certified_gap=0.2,
    )  # fmt: skip
    notes = {fact.label: fact.note for fact in strip(open_)}
    assert notes["certified gap"] == "the most that another plan can save; verify re-derives it"
    assert notes["gap"].endswith("on the word of cpsat pooled")


def test_names_are_escaped() -> None:
    """A model named like a tag is text on the page."""
    base = plans.small()
    named = base.model.model_copy(update={"name": "<script>alert(1)</script>"})
    text = render(report_of(type(base)(named, base.cluster, base.profile, base.instance,
                                       base.outcome, base.tables)))  # fmt: skip
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text


def test_an_infeasible_plan_has_a_page() -> None:
    """The reason comes first; nothing that needs a placement is drawn."""
    found = plans.infeasible()
    text = render(found)
    assert '<h2 id="why-not">' in text
    assert '<h2 id="memory">' not in text
    assert found.shortage is not None
    assert "needed everywhere" in text


def test_the_largest_page_stays_under_a_megabyte() -> None:
    """128 ranks × 1,000 tables with five alternatives each; HBM is then a heat map."""
    found = plans.large()
    other = Alternative("table_row_wise/CACHING/0.3", 10**11, "certificate", None, "unknown", None,
                        (Shortage("hbm", "rank", 127, 10**9),), (), ())  # fmt: skip
    tables = tuple(TableWhy(r.name, r.option, (other,) * 5, 9) for r in found.tables.rows)
    why = WhyInfo("step_time", "ps", 10**12, 10**11, tables)
    text = render(replace(found, answers=Answers(why=why)))
    assert "The first 3,000 of 5,000" in text
    assert len(text.encode()) < 1_000_000
    assert found.num_ranks == 128
    cells = re.findall(r'class="h\d+"><title>rank (\d+):', text)
    assert sorted(map(int, cells)) == list(range(128))


def test_the_stacks_add_up() -> None:
    """By hand: ``a`` takes 10 of HBM on every rank and 5 of DDR each, ``b`` 70 on rank 2."""
    info = memory_of(example(), placement())
    hbm, ddr = info.tiers
    assert hbm.parts == ("other",)
    assert [sum(u) for u in hbm.used] == [10, 10, 80, 10]
    assert [sum(u) for u in ddr.used] == [10, 10]
    assert hbm.share[2] == pytest.approx(0.8)


def test_modes_group_the_tables(info: ReportInfo) -> None:
    """Every table is in exactly one cell, and bytes sum to those of the tables."""
    names = [name for cell in info.modes.cells for name in cell.tables]
    assert sorted(names) == sorted(row.name for row in info.tables.rows)
    total = sum(cell.used["hbm"] for cell in info.modes.cells)
    assert total == sum(row.used["hbm"] for row in info.tables.rows)


def test_the_search_never_forgets(info: ReportInfo) -> None:
    """Bound and objective only improve and end at the verdict's values."""
    objectives = [p.objective for p in info.trace if p.objective is not None]
    bounds = [p.bound for p in info.trace if p.bound is not None]
    assert objectives == sorted(objectives, reverse=True)
    assert bounds == sorted(bounds)
    assert (objectives[-1], bounds[-1]) == (info.verdict.objective, info.verdict.bound)


def test_a_first_plan_far_above_does_not_flatten_the_search() -> None:
    """25 s, then 28 ms, above a bound of 25 ms: the picture shows only the latter, and says so."""
    trace = [TracePoint(0.1, 25 * 10**12, 0, "greedy"), TracePoint(1, 28 * 10**9, 25 * 10**9, "x")]
    drawing = draw_trace(trace, 2, "ps")
    labels = re.findall(r">(\d+) ms<", drawing.render())
    assert len(labels) >= 3
    assert "cut off" in drawing.about


def test_values_that_are_almost_equal_have_ticks_that_differ(info: ReportInfo) -> None:
    """Two plans a millionth apart: all labels of the axis differ."""
    curve = info.answers.frontier[0]
    close = [replace(curve.points[-i], objective=33_892_000_000 + 33_000 * i, certified=None)
             for i in (1, 2)]  # fmt: skip
    drawing = frontier_svg(replace(curve, points=tuple(close)))
    labels = re.findall(r">([\d.]+ ms)<", drawing.render())
    assert len(labels) >= 3
    assert len(set(labels)) == len(labels)


@cache
def made(hbm: str = "2GiB", rows: int = 1000, **pins: int) -> Plan:
    """Tables on pinned ranks of a pair of GPUs; 64 columns of 4 bytes, row-wise Adagrad."""
    tables: list[dict[str, Any]] = [
        {"name": name, "rows": rows, "dim": 64,
         "constraints": {"pin": {"sharding_type": "table_wise", "ranks": [rank]}}}
        for name, rank in pins.items()
    ]  # fmt: skip
    model = {"name": "m", "workload": {"batch_per_rank": 64}, "tables": tables}
    cluster = {"name": "c", "profile": "h100", "machines": 1, "ranks_per_machine": 2, "hbm": hbm,
               "ddr": "4GiB", "interconnect": {"intra_machine": "450GB/s"}}  # fmt: skip
    return plan(Model.from_dict(model), Cluster.from_dict(cluster), formulation="cpsat")


def test_a_plan_differs_in_nothing_from_itself() -> None:
    """No input, no figure and no table; the page says so."""
    one = made(a=0, b=1)
    info = diff_of_plans((one, one), ("x.json", "y.json"))
    assert (info.inputs, info.rows.changed, info.rows.alike) == ((), (), 2)
    assert all(figure.before == figure.after for figure in info.figures)
    assert "Model, cluster and profile are equal." in info.page()


def test_a_table_that_moves() -> None:
    """Its option stays, its ranks change, and its bytes with optimizer state move; the input that
    made it move is named, and the objectives' change is theirs."""
    first, second = made(a=0, b=1), made(a=0, b=0)
    info = diff_of_plans((first, second), ("x.json", "y.json"))
    (moved,) = info.rows.changed
    assert (moved.key, moved.before.ranks, moved.after.ranks) == ("b", ((1,),), ((0,),))
    assert moved.before.option == moved.after.option
    assert info.moved == {"b": 1000 * (64 * 4 + 4)}
    assert [c.key for c in info.inputs] == ["model.tables[b].constraints.pin.ranks"]
    assert (info.inputs[0].before, info.inputs[0].after) == ([1], [0])
    step = next(figure for figure in info.figures if figure.key == "step_time")
    assert (step.before, step.after) == tuple(
        p.outcome.objectives["step_time"] for p in (first, second)
    )
    shown = drawn(info.drawing())
    assert "inputs: 1 fields differ" in shown
    assert "tables: 1 differ (253.9 KiB), 1 alike" in shown
    assert "<table" in info.page()


def test_tables_and_memories_that_only_one_has() -> None:
    """They are named; a machine's equal ranks are one difference of the inputs."""
    first, second = made(a=0, b=1), made("3GiB", a=0, c=1)
    info = diff_of_plans((first, second), ("x.json", "y.json"))
    assert (info.rows.removed, info.rows.added, info.rows.alike) == (("b",), ("c",), 1)
    fields = [change.key for change in info.inputs]
    assert "cluster.machines[all].ranks[all].hbm" in fields
    assert any(field.startswith("model.tables[b]") for field in fields)
    assert "only in a: b; only in b: c" in " ".join(drawn(info.drawing()).split())


def test_a_plan_without_a_placement() -> None:
    """Its figures are unknown; no table is compared."""
    info = diff_of_plans((made(a=0), made(rows=100_000_000, a=0)), ("x.json", "y.json"))
    assert info.standings == ("certified optimal", "certified infeasible")
    assert (info.rows.changed, info.rows.removed) == ((), ("a",))
    assert all(figure.after is None for figure in info.figures if figure.key == "step_time")
    assert info.page()


def test_long_lists_are_shortened_on_the_terminal_only() -> None:
    """The page has every table."""
    names = [f"t{i:02}" for i in range(MOST_TABLES + 5)]
    plans = made(**dict.fromkeys(names, 0)), made(**dict.fromkeys(names, 1))
    info = diff_of_plans(plans, ("x.json", "y.json"))
    shown, page = drawn(info.drawing()), info.page()
    assert "… and 5 more tables" in shown
    assert all(f">{name}<" in page for name in names)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [(100, 103, "+3.00%"), (100, 50, "-50.00%"), (7, 7, "same"), (0, 7, ""), (None, 7, "")],
)
def test_a_change_in_words(before: int | None, after: int | None, said: str) -> None:
    """Relative to the first; nothing where there is nothing to relate it to."""
    assert change_of(before, after) == said
