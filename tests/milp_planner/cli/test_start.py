"""``milp-planner list`` and ``init``: what ships, and where to start.

The starter files of `milp-planner init`.
"""

import re
from pathlib import Path

from formulations import registry
from milp_planner.cli.start import STARTERS, write_starters
from milp_planner.inputs.files import load_cluster, load_model
from tests.milp_planner.cli.conftest import Cli


def test_list_names_everything_that_ships(cli: Cli) -> None:
    """Models, clusters, profiles and formulations, as text and as JSON."""
    found = cli("list", "--json").json
    names = {kind: {row["name"] for row in rows} for kind, rows in found.items()}
    assert {"dlrmv4-yambda5b", "mlperf-dlrm-dcnv2", "criteo-kaggle"} <= names["models"]
    assert {"1xa10", "8xmi350x", "8xb200-tight", "16x8xh100"} <= names["clusters"]
    assert names["formulations"] == set(registry.FORMULATIONS)
    assert "h100" in names["profiles"]
    text = cli("list", "clusters").out
    assert "8xmi350x" in text and "models" not in text
    assert max(len(line) for line in cli("list").out.splitlines()) <= 100


def test_list_profiles_is_the_support_matrix(cli: Cli) -> None:
    """Operators by hardware: measured (with which types), interpolated, data sheet or assumed."""
    rows = {
        row["name"]: row["sources"] for row in cli("list", "profiles", "--json").json["profiles"]
    }
    assert rows["h100-fbgemm"]["lookup"] == {
        "how": "measured", "hardware": "NVIDIA H100 80GB HBM3", "dtypes": ["fp32"],
    }  # fmt: skip
    assert rows["mi350x"]["lookup"]["how"] == "data_sheet"
    lines = cli("list", "profiles").out.splitlines()
    assert max(map(len, lines)) <= 100
    line = next(line.split() for line in lines if line.startswith("lookup "))
    assert len(line) == 1 + len(rows) and line[1 + [*rows].index("h100-fbgemm")] == "M32"


def test_init_writes_what_plan_reads(cli: Cli, tmp_path: Path) -> None:
    """The starter files are valid as they are and never overwritten."""
    folder = tmp_path / "fresh"
    folder.mkdir()
    done = cli("init", folder)
    assert done.code == 0 and "next: milp-planner plan" in done.out
    assert cli("plan", folder / "model.yaml", folder / "cluster.yaml", "-f", "greedy",
               "--json").code in (0, 3)  # fmt: skip
    (folder / "model.yaml").write_text("mine")
    again = cli("init", folder)
    assert again.code == 2 and "already exists" in again.err
    assert (folder / "model.yaml").read_text() == "mine"


def test_starters_are_valid(tmp_path: Path) -> None:
    """The planner reads the files as written: a model and a cluster."""
    model, cluster = write_starters(tmp_path)
    assert [model.name, cluster.name] == list(STARTERS)
    assert len(load_model(model).tables) == 4
    assert load_cluster(cluster).num_ranks == 8


def test_commented_fields_are_valid(tmp_path: Path) -> None:
    """Fields in indented comments are valid once the comment sign is removed."""
    for path in write_starters(tmp_path):
        text = path.read_text("utf-8")
        switched_on = re.sub(r"^( +)# ", r"\1", text, flags=re.MULTILINE)
        assert switched_on != text
        path.write_text(switched_on)
    assert load_model(tmp_path / "model.yaml").tables[1].constraints.pin is not None
    assert load_cluster(tmp_path / "cluster.yaml").reservations.hbm_bytes == 4 * 2**30
