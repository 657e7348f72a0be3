"""``milp-planner import-stats``: TorchRec's printed statistics as a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from milp_planner.cli import console
from milp_planner.cli.options import JsonOption, argument, option
from milp_planner.errors import BadInput
from milp_planner.files import write_together

StatsArgument = Annotated[
    Path,
    argument(
        "STATS",
        "What TorchRec's planner printed (its statistics with Parameter Info); may be gzipped.",
    ),
]
FolderOption = Annotated[
    Path, option("--output -o FOLDER", "Folder for model.yaml and tables.csv.")
]
DtypeOption = Annotated[str, option("--dtype TYPE", "Element type of the weights.")]
OptimizerOption = Annotated[str, option("--optimizer NAME", "Optimizer of the tables.")]

ExchangeOption = Annotated[str, option("--exchange-dtype TYPE", "Element type on the wire.")]


def run(
    stats: StatsArgument,
    output: FolderOption = Path(),
    dtype: DtypeOption = "fp32",
    optimizer: OptimizerOption = "rowwise_adagrad",
    exchange: ExchangeOption = "fp32",
    json: JsonOption = False,
) -> None:
    """Turn the statistics that TorchRec prints into a model.

    Writes model.yaml and tables.csv; nothing is overwritten. The printout itself is the plan of
    today: give it to audit, or to plan --today.
    """
    from milp_planner.today.rows import printed_tables
    from milp_planner.today.torchrec_stats import model_files

    targets = [output / "model.yaml", output / "tables.csv"]
    for target in targets:
        if target.exists():
            raise BadInput(f"{target}: already exists; nothing is overwritten")
    tables = printed_tables(stats)
    name = stats.name.removesuffix(".gz").removesuffix(".txt")
    texts = model_files(tables, name, dtype, optimizer, exchange)
    write_together(dict(zip(targets, texts, strict=True)))
    told = {"written": [str(t) for t in targets], "tables": len(tables)}
    console.tell(json, lambda: told, lambda: [f"{len(tables):,} tables"], *targets)
