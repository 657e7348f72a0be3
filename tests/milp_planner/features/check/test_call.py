"""``milp_planner.check`` misses no problem and invents none.

Warnings that claim certainty are right, and shipped inputs get none.

``check`` on a cluster whose sharding groups are left open.
"""

from pathlib import Path
from typing import Any

import pytest

from milp_planner import check, plan
from milp_planner.features.plan.doubts import doubts
from milp_planner.inputs import Cluster, Model
from scenarios import catalog
from tests.corpus import mistakes
from tests.milp_planner.cli.conftest import CLUSTER, MODEL
from tests.milp_planner.pricing.build import cluster, model


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A model and a cluster without a problem."""
    model, cluster = tmp_path / "model.yaml", tmp_path / "cluster.yaml"
    model.write_text(MODEL)
    cluster.write_text(CLUSTER)
    return model, cluster


def _found(model: Path, cluster: Path, profile: str | None = None) -> list[tuple[str, str, object]]:
    problems = check(model, cluster, profile=profile)
    return [(Path(each.file).name, each.field, each.line) for each in problems]


def test_none_where_there_is_none(files: tuple[Path, Path]) -> None:
    """Files, objects made from them, and shipped names have no problems."""
    assert check(*files) == ()
    assert check("dlrmv4-yambda5b", "8xh100") == ()


def test_every_problem_of_both_files(files: tuple[Path, Path]) -> None:
    """Two problems of the model, one of the cluster, and the unknown profile, each with file and
    line."""
    model, cluster = files
    model.write_text(MODEL.replace("dim: 64", "dim: -1"))
    cluster.write_text(CLUSTER.replace("2GiB", "2Gb"))
    assert _found(model, cluster, "h10O") == [
        ("model.yaml", "tables[0].dim", 4),
        ("model.yaml", "tables[1].dim", 5),
        ("cluster.yaml", "hbm", 5),
        ("", "", None),
    ]


def test_a_profile_that_is_unknown_has_its_line(files: tuple[Path, Path]) -> None:
    """Where the cluster names it; its own file's mistakes keep their place."""
    model, cluster = files
    cluster.write_text(CLUSTER.replace("h100", "h10O"))
    (found,) = check(model, cluster)
    assert (found.file, found.line, found.field) == (str(cluster), 2, "profile")
    assert "did you mean 'h100'" in found.message


def test_values_that_cannot_be_read(files: tuple[Path, Path]) -> None:
    """YAML's traps do not stop the reading: both lines, the cluster's mistake, and the fields that
    it lacks are reported."""
    model, cluster = files
    model.write_text(MODEL.replace("1M", "1e6").replace("2M", "2e6"))
    cluster.write_text("name: pair\nname: again\n")
    assert _found(model, cluster) == [
        ("model.yaml", "", 4),
        ("model.yaml", "", 5),
        ("cluster.yaml", "", 2),
        ("cluster.yaml", "machines", 1),
    ]


def test_every_line_of_a_csv(files: tuple[Path, Path]) -> None:
    """A line that is too short and a cell that is no number, each with its line."""
    model, cluster = files
    (model.parent / "t.csv").write_text("name,rows,dim\na,1\nb,1e6,010\nc,5,8\n")
    model.write_text("name: m\nworkload: {batch_per_rank: 8}\ntables: {csv: t.csv}\n")
    assert _found(model, cluster) == [("t.csv", "", 2), ("t.csv", "rows", 3), ("t.csv", "dim", 3)]


def test_every_table_that_the_cluster_cannot_take(files: tuple[Path, Path]) -> None:
    """A rank beyond the cluster and two tables without a legal option: three problems."""
    model, cluster = files
    grid = "constraints: {sharding_types: grid_shard}}"
    text = MODEL.replace("pooling_factor: 2}", grid).replace("pooling_factor: 20}", grid)
    model.write_text(text.replace("dim: 32}", "dim: 32, constraints: {ranks: [0, 9]}}"))
    found = [str(each) for each in check(model, cluster)]
    assert len(found) == 3
    assert "(table ads): found rank 9; allowed: 0 to 1" in found[0]
    assert all(name in text for name, text in zip(("users", "items"), found[1:], strict=True))


ODD_CLUSTER: dict[str, Any] = {
    "name": "c", "profile": "h100", "machines": 2, "ranks_per_machine": 2, "hbm": "80GiB",
    "ddr": "1TB", "interconnect": {"intra_machine": "450GB/s", "inter_machine": "50GB/s"},
}  # fmt: skip


def _model(*rows: int, **fields: Any) -> Model:
    tables = [{"name": f"t{i}", "rows": n, "dim": 128, **fields} for i, n in enumerate(rows)]
    return Model.from_dict({"name": "m", "workload": {"batch_per_rank": 64}, "tables": tables})


def _told(model: Model, **changes: Any) -> list[tuple[str, str]]:
    found = doubts(model, Cluster.from_dict({**ODD_CLUSTER, **changes}))
    return [(each.field, each.message) for each in found]


@pytest.mark.parametrize("cluster", [entry.name for entry in catalog.clusters()])
def test_no_shipped_cluster_is_doubted(cluster: str) -> None:
    """With a model that fits everywhere, no shipped cluster gets a warning."""
    assert doubts("criteo-kaggle", cluster) == ()


def test_forty_billion_rows_fit_nowhere() -> None:
    """20 TB of weights against 4 × 68 GiB and less than 2 TB: the warning has the table and both
    figures."""
    ((field, message),) = _told(_model(1_000_000, 40_000_000_000))
    assert field == "tables[1].rows" and "table t1 fits nowhere: it has 18.6 TiB" in message
    assert "c has 272.0 GiB of HBM and 1." in message and message.endswith("after reservations")


@pytest.mark.parametrize("rows", [[1_500_000_000] * 5, [500_000_000, 3_000_000_000]])
def test_what_is_told_is_so(rows: list[int]) -> None:
    """The warning appears exactly if the solve proves infeasibility (one case of either kind)."""
    told = _told(_model(*rows))
    found = plan(_model(*rows), Cluster.from_dict(ODD_CLUSTER), time_limit=20)
    assert (found.outcome.status.value == "infeasible") == bool(told), told


def test_all_together_fit_nowhere() -> None:
    """Five tables, each of which would fit alone: one warning about their sum."""
    ((field, message),) = _told(_model(*[1_500_000_000] * 5))
    assert field == "tables" and "together they need 3.5" in message


@pytest.mark.parametrize("changes", mistakes(__file__, "likely slips"))
def test_likely_slips(changes: dict[str, Any]) -> None:
    """One sentence about each slip, and where it is."""
    changes = dict(changes)
    field, ending = changes.pop("expected")
    ((found, message),) = _told(_model(1_000_000), **changes)
    assert found == field and message.endswith(ending)


def test_an_open_division_is_no_problem() -> None:
    """Some division can be priced, so nothing is wrong; warnings are about a single group."""
    place = cluster(2, 2, two_d={})
    assert check(model({}), place) == ()
    assert doubts(model({}), place) == ()
    assert check(model({"optimizer": "adam"}), place) == ()


def test_what_no_division_allows() -> None:
    """Adam with two groups, and a size that does not divide the ranks: a sentence each."""

    def told(**two_d: Any) -> str:
        return str(check(model({"optimizer": "adam"}), cluster(2, 2, two_d=two_d)))

    assert "whose state DMPCollection cannot average" in told(sharding_group_size=2)
    assert "which do not divide the 4 ranks" in told(sharding_group_size=3)
