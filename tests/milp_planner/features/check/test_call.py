"""``milp_planner.check`` misses no problem and invents none."""

from __future__ import annotations

from pathlib import Path

import pytest

from milp_planner import check
from tests.milp_planner.cli.conftest import CLUSTER, MODEL


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
