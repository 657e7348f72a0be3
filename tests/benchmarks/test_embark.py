"""HugeCTR's published instances, made from their lists, beside other planners."""

from pathlib import Path

import pytest

from benchmarks.embark import lists, page
from formulations import read_instance
from formulations.instance import Where


def test_plans_of_others_are_shown_beside_ours() -> None:
    """A dearer plan with a plus, a cheaper one with a minus, and one that was not found."""
    auto = {"objective": 100, "certified": 95, "status": "feasible", "seconds": 1.0}
    others = {"CP-SAT": {"objective": 90}, "HiGHS": {"objective": None},
              "HugeCTR": {"objective": 110}}  # fmt: skip
    row = {"case": "a", "tables": 2, "ranks": 8, "planners": {"auto": auto, **others}}
    (shown,) = page.blocks({"rows": [row]}).values()
    assert shown.splitlines()[-1] == "| a | 2 × 8 | 100 | 5% | +10% | −10% | no plan | – |"


@pytest.mark.parametrize("name", lists.PUBLISHED)
def test_a_published_instance_is_made_from_its_list(shared_data: Path, name: str) -> None:
    """Every option of the instance that NVIDIA's planner solved, with its cost and place."""
    theirs = read_instance(shared_data / "embark" / f"{name}.json.gz")
    ours = lists.instance_of(shared_data, lists.PUBLISHED[name], theirs.num_ranks)
    for table in range(theirs.num_tables):
        assert lists.facts(ours, table) == lists.facts(theirs, table)


def test_cost_and_bytes_by_hand(tmp_path: Path) -> None:
    """A table of 100 rows × 64, 2 ids a sample, in fp32 under SGD, cut into 4 × 2 parts.

    32 columns a part: lookups 65,536 · 4 · 2 · 32 / 4, exchange 65,536 · 60 · 32, 25 rows.
    """
    (tmp_path / "table-lists").mkdir()
    (tmp_path / "table-lists" / "embark_one.csv").write_text(
        "name,rows,dim,pooling,count,inputs\na,100,64,2,1,one\n"
    )
    made = lists.instance_of(tmp_path, "embark_one", 8)
    assert made.option_names[-1] == "r4c2"
    assert made.shard_cost[-1].tolist() == [4_194_304, 125_829_120]
    assert made.shard_use[-1].tolist() == [25 * 32 * 4]
    assert made.block(made.num_options - 1).where is Where.EVERY_RANK
