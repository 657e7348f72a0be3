"""``milp-planner report``: the page and its figures."""

from __future__ import annotations

from pathlib import Path

from tests.milp_planner.cli.conftest import Cli

FAST = ("--time-limit", 20, "--workers", 1)


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


def test_bad_input_writes_nothing(cli: Cli, planned: Path, tmp_path: Path) -> None:
    """A wrong question, a file that is no plan, a missing folder: exit code 2."""
    for wrong in ((planned, "--ask", "how"), ("cluster.yaml",), (planned, "cluster.yaml"),
                  (planned, "-o", "no/such.html")):  # fmt: skip
        done = cli("report", *wrong)
        assert done.code == 2
        assert len(done.err.strip().splitlines()) == 1
    assert not list(tmp_path.glob("*.html"))
