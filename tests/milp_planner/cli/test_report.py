"""``milp-planner report``: a plan, a batch, a comparison, or two of a kind, as page and figures."""

from pathlib import Path

from tests.milp_planner.cli.conftest import Cli

FAST = ("--time-limit", 20, "--workers", 1)
SUITE = """
name: small
models: model.yaml
clusters: cluster.yaml
formulations: [greedy, cpsat]
objectives: total
time_limit: 60
assertions: [{name: nothing is free, hbm_headroom: 100%}]
"""


def test_a_batch_as_page_and_json(cli: Cli, tmp_path: Path) -> None:
    """Page and JSON have the same figures, without solving anything or reading any input; two
    batches are compared by a query, and not by a page."""
    (tmp_path / "suite.yaml").write_text(SUITE)
    done = cli("batch", "suite.yaml", "-o", "runs", "--workers", 1)
    assert done.code == 1 and "as a page: milp-planner report runs" in done.out
    (tmp_path / "model.yaml").unlink()
    done = cli("report", "runs", "-o", "batch.html", "--json")
    assert done.code == 0 and (tmp_path / "batch.html").is_file()
    assert [row["status"] for row in done.json["rows"]][1] == "optimal"
    assert done.json["assertions"][0]["holds"] is False
    assert not (tmp_path / "report.html").exists()
    assert cli("report", "runs").code == 0
    assert "Suite small" in (tmp_path / "report.html").read_text("utf-8")
    done = cli("report", "runs", "runs", "-o", "diff.html")
    assert done.code == 2 and "batch --query" in done.err


def test_what_differs_between_two_plans(cli: Cli, planned: Path, tmp_path: Path) -> None:
    """Terminal, page and JSON of a plan and one with less memory and one table fewer."""
    model = (tmp_path / "model.yaml").read_text()
    (tmp_path / "less.yaml").write_text(model.replace("  - {name: ads, rows: 10k, dim: 32}\n", ""))
    assert cli("plan", "less.yaml", "cluster.yaml", "-f", "greedy", "-o", "less.json").code == 0
    done = cli("report", planned, "less.json", "-o", "diff.html")
    assert done.code == 0
    assert "only in a: ads" in " ".join(done.out.split())
    assert "Two plans" in (tmp_path / "diff.html").read_text("utf-8")
    found = cli("report", planned, "less.json", "--json").json
    assert found["rows"]["removed"] == ["ads"]
    assert any(change["key"].startswith("model.tables[ads]") for change in found["inputs"])


def test_it_writes_a_page(cli: Cli, planned: Path, tmp_path: Path) -> None:
    """By default it writes report.html, complete, with the tables of the model."""
    done = cli("report", planned)
    assert done.code == 0
    text = (tmp_path / "report.html").read_text("utf-8")
    assert text.rstrip().endswith("</html>")
    assert "<td>users</td>" in text


def test_the_figures_as_json(cli: Cli, planned: Path, tmp_path: Path) -> None:
    """--json prints the page's figures and writes no file unless asked."""
    done = cli("report", planned, "--json", "--ask", "frontier", *FAST)
    assert done.code == 0
    assert not (tmp_path / "report.html").exists()
    assert done.json["verdict"]["status"] == "optimal"
    assert [r["name"] for r in done.json["tables"]["rows"]] == ["users", "items", "ads"]
    assert [f["over"] for f in done.json["answers"]["frontier"]] == ["hbm"]


def test_answers_given_as_files_are_drawn(cli: Cli, planned: Path, tmp_path: Path) -> None:
    """The page shows what explain --json printed."""
    path = tmp_path / "answers.json"
    path.write_text(cli("explain", planned, "--ask", "smallest", "--json", *FAST).out, "utf-8")
    assert cli("report", planned, path).code == 0
    assert '<h2 id="smallest">' in (tmp_path / "report.html").read_text("utf-8")


def test_a_comparison_as_page_and_json(cli: Cli, tmp_path: Path) -> None:
    """The file of compare -o gives its page and its JSON."""
    done = cli("compare", "model.yaml", "cluster.yaml", "-f", "dp,cpsat", "--objective", "total",
               "-o", "c.json")  # fmt: skip
    assert done.code == 0 and "cpsat" in done.out
    found = cli("report", "c.json", "--json").json
    assert (found["model"], found["cluster"]) == ("small", "pair")
    assert {row["label"].split(",")[0] for row in found["rows"]} == {"cpsat", "dp"}
    assert cli("report", "c.json").code == 0
    assert "Minimising total" in (tmp_path / "report.html").read_text("utf-8")
