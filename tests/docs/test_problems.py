"""README's first lines: each problem has a command that runs as it stands and answers it."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from milp_planner.cli import main
from milp_planner.cli.start import write_starters

ROOT = Path(__file__).resolve().parents[2]
_LINE = re.compile(r"^\| ([^|]+) \| `([^`]+)`(.*) \|$", re.MULTILINE)
LINES = {
    problem: command
    for problem, command, _ in _LINE.findall((ROOT / "README.md").read_text("utf-8"))
}
TODAY = """table,mode,ratio,sharding_type,ranks
user_id,HBM_ONLY,,table_wise,0
item_id,HBM_ONLY,,table_wise,0
clicked_items,HBM_ONLY,,row_wise,all
country,HBM_ONLY,,data_parallel,all
"""


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str, int], str]:
    """Runs a problem's command in a folder with what ``init`` writes, and gives what it prints,
    spaces and frames reduced."""
    write_starters(tmp_path)
    monkeypatch.chdir(tmp_path)

    def run(problem: str, code: int) -> str:
        program, *words = shlex.split(LINES[problem])
        assert program == "milp-planner"
        found = main.run(words)
        shown = capsys.readouterr()
        assert found == code, shown
        return " ".join((shown.out + shown.err).replace("│", " ").split())

    return run


def test_every_line_is_tested() -> None:
    """The list has these five problems, and none that no test here runs."""
    assert list(LINES) == [
        "one rank runs out of memory while others have room",
        "TorchRec's planner times out above 500 tables",
        "dynamicemb's tables share the GPUs with TorchRec's",
        "no plan is found",
        "the trainer does not run my plan",
    ]


def test_one_rank_runs_out_of_memory(run: Callable[[str, int], str]) -> None:
    """``audit`` names the full rank, the bytes above its memory, its tables, and what to move."""
    model = Path("model.yaml").read_text("utf-8").replace("rows: 50M", "rows: 120M")
    Path("model.yaml").write_text(model, "utf-8")
    Path("today.csv").write_text(TODAY, "utf-8")
    said = run("one rank runs out of memory while others have room", 1)
    assert "DOES NOT FIT" in said
    assert re.search(r"to blame: rank 0, hbm [\d.]+ GiB of 67.7 GiB", said)
    assert re.search(r"[\d.]+ GiB too much: user_id [\d.]+ GiB, item_id", said)
    assert "better: user_id from table_wise" in said


def test_both_kinds_are_placed_at_once(run: Callable[[str, int], str]) -> None:
    """One plan holds TorchRec's tables and dynamicemb's; its export says what runs instead where
    the trainer's own planner decides more."""
    said = run("dynamicemb's tables share the GPUs with TorchRec's", 0)
    assert "CERTIFIED OPTIMAL" in said or "OPTIMAL BY CPSAT" in said
    assert re.search(r"user_id column_wise:4 .* clicked_items row_wise HBM_ONLY roundrobin", said)
    said = run("the trainer does not run my plan", 0)
    assert "the trainer's planner will run this as" in said
    assert re.search(r"2 tables differ: user_id \(type: table_wise, not column_wise\)", said)


def test_no_plan_is_found(run: Callable[[str, int], str]) -> None:
    """What each tier lacks, to the byte, and the least that would do."""
    said = run("no plan is found", 1)
    assert "CERTIFIED INFEASIBLE" in said
    assert re.search(r"hbm of each rank [\d.]+ GiB [\d.]+ GiB [\d.]+ GiB proved least", said)
    assert re.search(r"in the cluster's file: hbm: \d+ for each rank", said)


@pytest.mark.slow
def test_torchrec_above_five_hundred_tables() -> None:
    """The one line plans 520 tables within its limit, where README says so, and proves it."""
    pytest.importorskip("torchrec", reason="TorchRec is not installed")
    import torch
    from torchrec import EmbeddingBagCollection
    from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
    from torchrec.distributed.planner import Topology
    from torchrec.modules.embedding_configs import EmbeddingBagConfig

    from milp_planner.integrations.torchrec import MilpShardingPlanner

    tables = [
        EmbeddingBagConfig(
            name=f"t{i}", num_embeddings=10_000 * (1 + i % 50), embedding_dim=64,
            feature_names=[f"f{i}"],
        )
        for i in range(520)
    ]  # fmt: skip
    topology = Topology(world_size=4, compute_device="cuda", hbm_cap=8 * 2**30)
    names = {"MilpShardingPlanner": MilpShardingPlanner, "topology": topology}
    planner = eval(LINES["TorchRec's planner times out above 500 tables"], names)
    model = EmbeddingBagCollection(device=torch.device("meta"), tables=tables)
    plan = planner.plan(model, [EmbeddingBagCollectionSharder()])
    assert len(plan.plan[""]) == 520
    assert planner.outcome.bound is not None and planner.outcome.gap < 0.05
