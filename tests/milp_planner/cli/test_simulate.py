"""``milp-planner simulate``."""

from __future__ import annotations

from pathlib import Path

from tests.milp_planner.cli.conftest import Cli


def test_predicted_beside_simulated(cli: Cli, planned: Path) -> None:
    """A table of every placed table, and the same figures as JSON."""
    shown = cli("simulate", planned, "--batches", 2)
    assert shown.code == 0
    assert "predicted → simulated" in shown.out
    assert "users" in shown.out
    assert "HBM of rank" in shown.out
    found = cli("simulate", planned, "--batches", 2, "--json").json
    assert [t["name"] for t in found["tables"]] == ["users", "items", "ads"]
    assert found["batches"] == 2
    assert len(found["rank_ids"]) == 2
    assert [(m["memory"], len(m["predicted"]), len(m["simulated"])) for m in found["memory"]] == [
        ("HBM", 2, 2), ("DDR", 1, 1),
    ]  # fmt: skip


def test_memory_beyond_what_is_reserved_is_told() -> None:
    """The fullest place always, an excess with its place and share."""
    from milp_planner.cli.simulate import _memory
    from milp_planner.features.simulate.places import MemoryInfo

    fits = MemoryInfo("HBM", "rank", (2048, 4096), (1024, 3072), 1)
    assert _memory(fits) == "HBM of rank 1, the fullest  4 KiB reserved → 3 KiB filled"
    over = _memory(MemoryInfo("DDR", "machine", (2048, 4096), (3072, 4096), 1))
    assert over.endswith("; machine 0 fills 1 KiB (50.00%) more than reserved")


def test_bad_input_is_a_sentence(cli: Cli, planned: Path, tmp_path: Path) -> None:
    """Wrong traces, skew and numbers leave with code 2 and say what is allowed."""
    (tmp_path / "keys.csv").write_text("1\nx\n")
    (tmp_path / "far.csv").write_text("1\n1000000000000\n")
    wrong = {
        "TABLE=FILE": ["--trace", "users"],
        "not a file of keys": ["--trace", "users=absent.npy"],
        "keys.csv": ["--trace", "users=keys.csv"],
        "far.csv: key number 2 is 1000000000000; allowed: 0 to": ["--trace", "ads=far.csv"],
        "dlrm-2021, dlrm-2022": ["--skew", "flat"],
        "a whole number, 1 to 10000": ["--batches", "0"],
    }
    for said, options in wrong.items():
        done = cli("simulate", planned, *options)
        assert done.code == 2
        assert said in " ".join(done.err.split())


def test_published_skew_reaches_tables_without_statistics(cli: Cli, planned: Path) -> None:
    """With the skew of production-like tables fewer rows of a batch are different."""
    plain = cli("simulate", planned, "--batches", 2, "--json").json
    skewed = cli("simulate", planned, "--batches", 2, "--skew", "dlrm-2022", "--json").json
    assert skewed["tables"][2]["unique_fraction"] < plain["tables"][2]["unique_fraction"]
