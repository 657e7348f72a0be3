"""``milp-planner audit``: whether a plan fits, how far it is from the bound, and what is to
blame."""

from __future__ import annotations

from pathlib import Path

import pytest

from milp_planner import read_plan
from tests.milp_planner.cli.conftest import CLUSTER, Cli, Done

CSV = """\
# what runs today
table, mode, ratio, sharding type, ranks
users, HBM_ONLY, , table_wise, 0
items, HBM_ONLY, , table_wise, 0
ads, HBM_ONLY, , row_wise, all
"""


def _audit(cli: Cli, csv: str, *more: str, cluster: str = "cluster.yaml") -> Done:
    Path("today.csv").write_text(csv)
    return cli("audit", "today.csv", "model.yaml", cluster, "-f", "cpsat", *more)


def test_a_plan_of_ours_is_at_its_bound(cli: Cli, planned: Path) -> None:
    """plan.json audited on its own inputs fits, with distance 0."""
    done = cli("audit", planned, "model.yaml", "cluster.yaml", "-f", "cpsat", "--json")
    assert done.code == 0 and done.json["fits"] and done.json["distance"] == 0
    assert (
        "no better plan was found"
        in cli("audit", planned, "model.yaml", "cluster.yaml", "-f", "cpsat").out
    )


def test_a_lopsided_plan_names_its_slow_rank(cli: Cli) -> None:
    """With everything big on rank 0 the plan fits, but others wait for rank 0, mostly for items."""
    done = _audit(cli, CSV, "--json")
    info = done.json
    assert done.code == 0 and info["fits"] and info["distance"] > 0 and info["saving"] > 0
    slow = info["slow"][0]
    assert slow["rank"] == 0 and slow["tables"][0]["table"] == "items"
    gain = info["gains"][0]
    assert gain["table"] == "items" and gain["better_cost"] < gain["cost"]
    text = _audit(cli, CSV).out
    assert "FITS" in text and "to blame: rank 0" in text and "best plan found" in text
    assert f"better: items from {gain['option']}" in text
    assert max(len(line) for line in text.splitlines()) <= 100


def test_an_overfull_plan_names_place_and_tables(cli: Cli) -> None:
    """Not enough HBM on rank 0: exit code 1, rank 0 and its largest table are named."""
    Path("small.yaml").write_text(CLUSTER.replace("2GiB", "700MiB"))
    done = _audit(cli, CSV, "--json", cluster="small.yaml")
    info = done.json
    assert done.code == 1 and not info["fits"]
    worst = info["overfull"][0]
    assert (worst["resource"], worst["scope"], worst["place"]) == ("hbm", "rank", 0)
    assert worst["used"] > worst["capacity"] and worst["tables"][0]["table"] == "items"
    text = _audit(cli, CSV, cluster="small.yaml").out
    assert "DOES NOT FIT" in text and "to blame: rank 0, hbm" in text and "as if it fitted" in text
    assert str(worst["used"]) not in text and "hbm of rank 0: " in text and "MiB too much" in text


@pytest.mark.parametrize(
    ("wrong", "lines"),
    [
        (CSV.replace("HBM_ONLY", "HBM"), (3, 4, 5)),  # cannot be read
        (
            CSV.replace("users", "user").replace(", all", ", 7"),
            (3, 5),
        ),  # not of these inputs
    ],
)
def test_every_wrong_row_is_named_at_once(cli: Cli, wrong: str, lines: tuple[int, ...]) -> None:
    """Each wrong row has a sentence with its line."""
    done = _audit(cli, wrong)
    assert done.code == 2
    for line in lines:
        assert f"today.csv:{line}: " in done.err


def test_a_ratio_off_the_grid_is_priced(cli: Cli) -> None:
    """The user's own ratio joins the grid and is not refused."""
    csv = CSV.replace("items, HBM_ONLY, , table_wise", "items, CACHING, 37%, table_wise")
    done = _audit(cli, csv, "--json")
    assert done.code == 0, done.err


def test_column_shards_are_counted_by_their_ranks(cli: Cli) -> None:
    """Two ranks of a column-wise table mean two column shards, one on each rank."""
    csv = CSV.replace("items, HBM_ONLY, , table_wise, 0", 'items, HBM_ONLY, , column_wise, "0,1"')
    ask = "--json", "--profile", "b200"  # with slower links, both shards on one rank are faster
    both = _audit(cli, csv, *ask).json
    one = _audit(cli, csv.replace('"0,1"', '"1,1"'), *ask).json
    assert both["fits"] and both["objective"] < one["objective"]


def test_what_it_found_is_kept(cli: Cli) -> None:
    """-o keeps the better plan and --page its report; the plan verifies and costs what audit
    said."""
    done = _audit(cli, CSV, "-o", "better.json", "--page", "better.html", "--json")
    assert done.code == 0 and cli("verify", "better.json").code == 0
    assert read_plan("better.json").outcome.objective == done.json["best"]
    assert Path("better.html").read_text().startswith("<!doctype html>")


def test_another_profile_prices_it_otherwise(cli: Cli) -> None:
    """Under slower hardware the same plan takes longer."""
    fast, slow = (
        _audit(cli, CSV, "--json", *more).json["objective"]
        for more in (("--profile", "b200"), ("--profile", "torchrec-default"))
    )
    assert slow > fast


def test_a_torchrec_plan_is_a_plan_of_today(cli: Cli, planned: Path) -> None:
    """An exported TorchRec plan can be audited, and a new plan can start from it."""
    assert cli("export", planned, "--to", "torchrec", "-o", "sharding.json").code == 0
    done = cli("audit", "sharding.json", "model.yaml", "cluster.yaml", "-f", "cpsat", "--json")
    assert done.code == 0 and done.json["distance"] == 0
    again = cli("plan", "model.yaml", "cluster.yaml", "--today", "sharding.json", "--json")
    assert again.code == 0 and again.json["outcome"]["objective"] == done.json["objective"]


@pytest.mark.parametrize("name", ["sharding.plan", "sharding", "sharding.txt"])
def test_the_content_of_a_plan_counts_and_not_its_name(cli: Cli, planned: Path, name: str) -> None:
    """An exported ShardingPlan, and a plan.json, in a file with another ending or none."""
    assert cli("export", planned, "--to", "torchrec", "-o", name).code == 0
    assert cli("audit", name, "model.yaml", "cluster.yaml", "-f", "greedy").code == 0
    planned.rename(name)
    assert cli("audit", name, "model.yaml", "cluster.yaml", "-f", "greedy").code == 0


def test_a_measured_peak_stands_beside_the_predicted_one(cli: Cli) -> None:
    """Rank 0's rows alone take 745 MiB; the rest of its measured peak is outside the embeddings."""
    [rank] = _audit(cli, CSV, "--peak", "0=1.9GiB", "--json").json["peaks"]["ranks"]
    assert rank["rank"] == 0 and rank["measured"] == round(1.9 * 2**30)
    assert rank["embeddings"] > 3_000_000 * 64 * 4 and rank["predicted"] > rank["embeddings"]
    text = _audit(cli, CSV, "--peak", "0=1.9GiB").out
    assert "predicted" in text and "measured_peak:" in text


def test_bad_measured_peaks(cli: Cli) -> None:
    """A missing rank, a missing unit, an unknown rank: exit code 2 and a sentence."""
    for text in ("1.9GiB", "0=1.9", "2=1.9GiB"):
        done = _audit(cli, CSV, "--peak", text)
        assert done.code == 2 and "allowed" in done.err


def test_a_peak_of_a_plan_that_does_not_fit(cli: Cli) -> None:
    """Measured and predicted peaks are shown even if the ledger says that the plan cannot fit."""
    Path("small.yaml").write_text(CLUSTER.replace("2GiB", "700MiB"))
    done = _audit(cli, CSV, "--peak", "0=1.9GiB", "--json", cluster="small.yaml")
    assert done.code == 1 and done.json["peaks"]["ranks"][0]["predicted"] > 700 * 2**20
