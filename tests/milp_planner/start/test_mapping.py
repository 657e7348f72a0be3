"""A plan to start from on a changed model and cluster: names, ranks and options are matched.

The user's own plan, read from CSV: every cell is checked, and there is never a traceback.
"""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from formulations.result.check import check, moved_tables
from milp_planner import Cluster, Model, Plan, plan
from milp_planner.errors import BadInput
from milp_planner.inputs.constraints import PinSpec
from milp_planner.plans.compile import compile_for
from milp_planner.start.mapping import Start, placed_on, same_ranks, start_on
from milp_planner.start.rows import parse_ranks, pins_of, read_csv, refuse
from tests.corpus import mistakes
from tests.milp_planner.features.small import MODEL, cluster
from tests.milp_planner.pricing import build
from tests.milp_planner.pricing.build import model

TABLE = {"name": "more", "rows": "1M", "dim": 64, "pooling_factor": 2}


@pytest.fixture(scope="module")
def before() -> Plan:
    """A proved plan on two machines of two ranks."""
    return plan(MODEL, cluster(2), formulation="cpsat", time_limit=30)


def changed(tables: list[dict[str, Any]], **fields: Any) -> Model:
    """The small model with changed tables."""
    return Model.from_dict({**MODEL.to_dict(), "tables": tables, **fields})


def on(before: Plan, model: Model = MODEL, place: Cluster | None = None, **more: Any) -> Start:
    """The plan carried to a model and cluster."""
    return start_on(before, model, place or cluster(2), "step_time", **more)


def test_nothing_changed_nothing_moves(before: Plan) -> None:
    """The placement and its objective are the same."""
    found = on(before)
    assert (found.gone, found.new, found.displaced) == ((), (), ())
    verdict = check(found.compiled.instance, found.placement)
    assert verdict.objectives["step_time"] == before.outcome.objective
    assert moved_tables(found.compiled.instance, found.placement) == []


def test_tables_come_go_and_grow(before: Plan) -> None:
    """A new table has no place, a missing one is named, a grown one stays where it is."""
    tables = MODEL.to_dict()["tables"]
    tables[1]["rows"] = 2_400_000
    found = on(before, changed([*tables[1:], TABLE]))
    assert (found.gone, found.new, found.displaced) == (("users",), ("more",), ())
    assert found.placement.options[-1] == -1 and found.placement.ranks[-1] == []
    assert [now.table for now in found.compiled.instance.current] == [0, 1, 2]
    assert [now.option >= 0 for now in found.compiled.instance.current] == [True] * 3


def test_a_ratio_that_is_gone_becomes_the_nearest(before: Plan) -> None:
    """A table whose ratio is no longer offered begins from the nearest one and counts as moved."""
    tables = MODEL.to_dict()["tables"]
    tables[0]["constraints"] = {"modes": ["CACHING"], "cache_ratios": ["0.4"]}
    other = plan(changed(tables), cluster(2), formulation="cpsat", time_limit=30)
    assert other.table("users").option.endswith("CACHING/0.4")
    tables[0]["constraints"] = {"modes": ["CACHING"], "cache_ratios": ["0.1", "0.5", "0.9"]}
    found = on(other, changed(tables))
    name = found.compiled.instance.option_names[int(found.placement.options[0])]
    assert name == other.table("users").option.replace("0.4", "0.5")
    assert found.displaced == ("users",)
    assert found.compiled.instance.current[0].option == -1


def test_a_mode_that_is_gone_becomes_the_one_with_as_much_in_hbm(before: Plan) -> None:
    """If HBM_ONLY is no longer offered, the largest cached ratio is nearest."""
    tables = MODEL.to_dict()["tables"]
    assert before.table("users").mode == "HBM_ONLY"
    tables[0]["constraints"] = {"modes": ["CACHING", "HOST_ONLY"]}
    found = on(before, changed(tables))
    name = found.compiled.instance.option_names[int(found.placement.options[0])]
    assert name.startswith(before.table("users").sharding_type) and name.endswith("CACHING/0.9")


def test_ranks_by_machine() -> None:
    """Lost ranks and machines are left out; the others become the new ranks in order."""
    two, three = cluster(2), cluster(3)
    assert same_ranks(two, two) == {0: 0, 1: 1, 2: 2, 3: 3}
    assert same_ranks(three, two, [2, 3]) == {0: 0, 1: 1, 4: 2, 5: 3}
    assert same_ranks(two, two, [1]) == {0: 0, 2: 2, 3: 3}, "replaced in place"
    assert same_ranks(two, two, [0, 1]) == {2: 2, 3: 3}
    assert same_ranks(two, three) == {0: 0, 1: 1, 2: 2, 3: 3}
    assert same_ranks(three, two) == {0: 0, 1: 1, 2: 2, 3: 3}
    one_less = Cluster.from_dict(
        {**two.to_dict(), "machines": [{"ddr": "16GiB", "ranks": n, "hbm": "4GiB"} for n in (1, 2)]}
    )
    assert same_ranks(two, one_less, [0]) == {1: 0, 2: 1, 3: 2}
    assert same_ranks(two, one_less) == {0: 0, 2: 1, 3: 2}


def test_tables_on_a_lost_rank_are_displaced(before: Plan) -> None:
    """Tables with a shard there have to move; the others stay."""
    found = on(before, place=cluster(1), lost=(2, 3))
    names = {t.name for t in before.tables if any(r > 1 for block in t.ranks for r in block)}
    assert set(found.displaced) == names and names


def test_refusals(before: Plan) -> None:
    """Another model's plan, and a lost rank that never existed."""
    with pytest.raises(BadInput, match="none of the tables of model 'other'; it was made for"):
        on(before, changed([TABLE], name="other"))
    with pytest.raises(BadInput, match=r"lost rank 4: .* has the ranks 0 to 3"):
        on(before, lost=(4,))


def test_theirs_is_taken_literally(before: Plan, tmp_path: Path) -> None:
    """A CSV of the same plan is the same start; a row that is not legal is an error, while the same
    table of our plan starts from the nearest option; new tables are free in both."""
    rows = [
        f"{name},{p.mode},{p.cache_ratio or ''},{p.sharding_type},"
        f"{' '.join(map(str, p.ranks or ()))},{p.column_width or ''},{p.dist_type or ''}"
        for name, p in pins_of(before).items()
    ]
    path = tmp_path / "theirs.csv"
    header = "table,mode,ratio,sharding_type,ranks,column_width,dist_type"
    path.write_text("\n".join([header, *rows]))
    ours, theirs = on(before), start_on(path, MODEL, cluster(2), "step_time")
    names = ours.compiled.instance.option_names
    for one, other in zip(
        ours.compiled.instance.current, theirs.compiled.instance.current, strict=True
    ):
        same = [names[now.option].removesuffix("/beside_caching") for now in (one, other)]
        assert same[0] == same[1] and one.ranks == other.ranks, "a CSV names no fusion group"
    tables = [*MODEL.to_dict()["tables"], TABLE]
    tables[0]["constraints"] = {"modes": ["CACHING", "HOST_ONLY"]}
    assert on(before, changed(tables)).displaced == ("users",)
    with pytest.raises(BadInput, match=r"table users: .* is not a legal option"):
        start_on(path, changed(tables), cluster(2), "step_time")
    free = start_on(path, changed([*MODEL.to_dict()["tables"], TABLE]), cluster(2), "step_time")
    assert free.new == ("more",) and free.placement.options[-1] == -1


def test_theirs_after_ranks_were_lost(before: Plan) -> None:
    """Tables of pins on a lost rank must move; the others stay."""
    found = start_on(pins_of(before), MODEL, cluster(2), "step_time", lost=[3])
    assert {*found.displaced} == {t.name for t in before.tables if 3 in sum(t.ranks, ())}


def test_a_plan_on_another_instance(before: Plan) -> None:
    """Where the options and ranks exist, the same placement; else None."""
    found = placed_on(compile_for(MODEL, cluster(2), "step_time"), before)
    assert found is not None and before.outcome.placement is not None
    assert found.options.tolist() == before.outcome.placement.options.tolist()
    assert placed_on(compile_for(MODEL, cluster(1), "step_time"), before) is None


HEAD = "table,mode,ratio,sharding_type,ranks"


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    """A path for one CSV."""
    return tmp_path / "p.csv"


def test_reads_every_kind_of_cell(csv: Path) -> None:
    """Blanks, comments, quoting, aliases, percent, dist_type and width."""
    csv.write_text(
        "# today\n\nTable, Mode, cache_ratio, sharding, ranks, dist_type, column_width\n"
        'a, caching, 35%, row_wise, all, continuous,\nb, HBM_ONLY, 1, column_wise, "0,2-3", , 64\n'
        "c, HOST_ONLY, , TABLE_WISE, 1, ,\n"
    )
    a, b, c = read_csv(csv)
    assert (a.table, a.mode, a.ratio, a.sharding_type) == (
        "a",
        "CACHING",
        Fraction(7, 20),
        "row_wise",
    )
    assert a.ranks is None and a.dist_type == "continuous" and a.column_width is None
    assert b.ranks == (0, 2, 3) and b.ratio is None and b.column_width == 64
    assert c.sharding_type == "table_wise" and c.ranks == (1,)
    assert a.where.endswith("p.csv:4: table a")


@pytest.mark.parametrize(
    ("text", "ranks"),
    [("all", None), ("", None), ("ALL", None), ("3", (3,)), ("0-3,6", (0, 1, 2, 3, 6)),
     ("0 1;2", (0, 1, 2)), ("1,1", (1, 1)), ("5-5", (5,))],
)  # fmt: skip
def test_ranks(text: str, ranks: tuple[int, ...] | None) -> None:
    """Runs, lists and repeats; the order is kept."""
    assert parse_ranks(text, "here") == ranks


@pytest.mark.parametrize("text", ["x", "3-1", "-1", "1-", "0-3-5", "1.5", "٣", "9999999"])
def test_wrong_ranks(text: str) -> None:
    """Text that is not a rank is quoted."""
    with pytest.raises(BadInput, match="ranks has"):
        parse_ranks(text, "here")


@pytest.mark.parametrize(("row", "words"), mistakes(__file__, "wrong rows"))
def test_wrong_rows(csv: Path, row: str, words: str) -> None:
    """Each mistake gets one sentence with its line and the remedy."""
    csv.write_text(f"{HEAD}\n{row}\n")
    with pytest.raises(BadInput, match=words):
        read_csv(csv)


def test_every_wrong_row_is_told_at_once(csv: Path) -> None:
    """Two wrong rows of three each have their line; beyond twenty, they are counted."""
    csv.write_text(f"{HEAD}\na,CACHING,1.5,row_wise,\nb,HBM_ONLY,,row_wise,\nc,HBM,,row_wise,\n")
    with pytest.raises(BadInput) as caught:
        read_csv(csv)
    first, second = str(caught.value).splitlines()
    assert "p.csv:2" in first and "p.csv:4" in second and len(caught.value.problems) == 2
    csv.write_text(HEAD + "\nc,HBM,,row_wise," * 23)
    with pytest.raises(BadInput, match="and 3 more wrong rows"):
        read_csv(csv)


def test_a_line_break_in_a_cell_does_not_break_the_sentence() -> None:
    """A quoted cell may hold a line break; its row still takes one line of the error."""
    with pytest.raises(BadInput, match=r"\Atable a␊b: unknown\ntable c: unknown\Z") as refused:
        refuse(["table a\nb: unknown", "table c: unknown"])
    assert [each.message for each in refused.value.problems] == str(refused.value).split("\n")


def test_an_empty_file_says_what_it_needs(csv: Path) -> None:
    """Without a header, the error names the columns."""
    csv.write_text("\n# nothing\n")
    with pytest.raises(BadInput, match="needs table, mode, ratio, sharding_type, ranks"):
        read_csv(csv)


_CELLS = st.text(alphabet='abc,0123456789-%/."\n #;éall', max_size=60)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_CELLS, st.booleans())
@example("a,CACHING,\n", True)
def test_no_text_is_a_traceback(csv: Path, text: str, headed: bool) -> None:
    """Any text gives rows, or BadInput with a sentence per row."""
    csv.write_text((HEAD + "\n" if headed else "") + text)
    try:
        rows = read_csv(csv)
    except BadInput as error:
        assert all(line.startswith(str(csv)) for line in str(error).splitlines())
    else:
        assert all(row.mode for row in rows)


@pytest.mark.parametrize("fusion", ["honoured", "free"])
def test_cached_tables_are_judged_at_the_factor_of_their_kernel(fusion: str) -> None:
    """Row-wise 0.3 and 0.5 of as many rows run at 0.4, which is no violation; with ``fusion: free``
    they keep their own."""
    today = {
        name: PinSpec(mode="CACHING", sharding_type="row_wise", cache_ratio=Fraction(ratio))
        for name, ratio in (("t0", "0.3"), ("t1", "0.5"))
    }
    start = start_on(today, model({}, {}, fusion=fusion), build.cluster(1, 2), "step_time")
    options = start.compiled.options
    ratios = [options.choices[o].ratio for o in start.placement.options.tolist()]
    runs = ["0.4", "0.4"] if fusion == "honoured" else ["0.3", "0.5"]
    assert ratios == [Fraction(ratio) for ratio in runs]
    assert check(start.compiled.instance, start.placement).feasible
