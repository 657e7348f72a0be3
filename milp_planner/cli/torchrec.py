"""``milp-planner torchrec-dry-run``: a TorchRec model on several SKUs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from milp_planner.cli import console, options
from milp_planner.cli.options import argument, asking, option, whole
from milp_planner.errors import BadInput
from milp_planner.files import check_writable, write_json
from milp_planner.request import Limits

if TYPE_CHECKING:
    from torchrec.distributed.planner.types import HardwareConfig

    from milp_planner.drawing.grid import Grid
    from milp_planner.integrations.torchrec.service import DryRun, SkuRow


@asking(Limits, "time_limit", "workers")
def torchrec_dry_run(  # noqa: PLR0913 - one parameter an option is how Typer declares a command
    request: Limits,
    *,
    reference: Annotated[
        str,
        argument(
            "MODULE:FUNCTION",
            "Your function (file.py:function works too), which takes no arguments and returns "
            "TorchRecInputs or a dict: module, topology, and optionally sharders, batch_size, "
            "constraints, enumerator, storage_reservation.",
        ),
    ],
    skus: Annotated[
        str,
        option(
            "--skus CLUSTER,…",
            "SKUs, each given by a cluster built from it (milp-planner list clusters, or YAML "
            "files); HBM, DDR and bandwidths of a rank are taken from that cluster.",
        ),
    ],
    world_size: Annotated[
        int | None,
        option("--world-size N", "Number of ranks; default: your topology's.", whole(1, 2**20)),
    ] = None,
    local_world_size: Annotated[
        int | None,
        option(
            "--local-world-size N", "Ranks per host; default: your topology's.", whole(1, 2**20)
        ),
    ] = None,
    home_sku: Annotated[
        str | None,
        option(
            "--home-sku CLUSTER",
            "One of the SKUs; every SKU then reserves 15% of this one's HBM (TorchRec's "
            "SKUAwareStorageReservation), beside dense parameters and ids.",
        ),
    ] = None,
    base: Annotated[
        str | None,
        option(
            "--base SIZE",
            "HBM that every SKU reserves instead of that share and dense parameters, such as "
            "20GiB.",
        ),
    ] = None,
    dense_multiple: Annotated[
        float | None,
        option(
            "--dense-multiple X",
            "How many times the dense parameters TorchRec's reservation counts; default: 6.",
        ),
    ] = None,
    no_module_terms: Annotated[
        bool,
        option(
            "--no-module-terms",
            "With --home-sku or --base: reserve neither dense parameters nor ids of a batch "
            "(TorchRec's reserve_module_terms=False).",
        ),
    ] = False,
    objective: Annotated[
        Literal["busiest_rank", "critical_path", "critical_path_with_ids"],
        option(
            "--objective",
            "busiest_rank: TorchRec's rating; critical_path: what its statistics report; "
            "critical_path_with_ids: that, and every module's longest exchange of ids.",
        ),
    ] = "busiest_rank",
    ddr: Annotated[
        Literal["rank", "machine"],
        option("--ddr", "Whether DDR limits each rank, as in TorchRec, or the machine."),
    ] = "rank",
    output: Annotated[
        Path | None,
        option(
            "--output -o DIR",
            "Folder for the plans: DIR/SKU.json, in the format of export --to torchrec.",
        ),
    ] = None,
    rows: Annotated[
        Path | None,
        option(
            "--rows FILE",
            "Append a row about every SKU, also where planning fails: TorchRec's columns, and "
            "bound, gap, seed and work. FILE.jsonl, FILE.sqlite or FILE.db (table runs).",
        ),
    ] = None,
    json: options.JsonOption = False,
) -> None:
    """Plan a TorchRec model on several SKUs through TorchRec's own dry run; no GPU needed.

    For each SKU, shows whether the model fits, the step time in TorchRec's estimates, the bound
    that no plan beats, the gap, and the rank that limits the plan. Exit code 1 if a SKU falls
    short. Needs TorchRec 1.9.
    """
    from milp_planner.integrations.torchrec import load_inputs
    from milp_planner.integrations.torchrec.service import dry_run
    from milp_planner.plans.run_rows import append_rows, check_rows_file

    if rows is not None:
        check_rows_file(rows)
    hardware = _hardware(skus)
    if output is not None and output.is_dir():
        check_writable(*(output / f"{sku}.json" for sku in hardware), kind="torchrec")
    inputs = load_inputs(reference)
    found = dry_run(
        inputs,
        hardware,
        world_size=world_size,
        local_world_size=local_world_size,
        home_sku=home_sku,
        base_bytes=None if base is None else _size(base),
        parameter_multiplier=dense_multiple,
        reserve_module_terms=not no_module_terms,
        objective=objective,
        ddr=ddr,
        settings=request.settings(),
    )
    written = [] if output is None else _write(found, output)
    if rows is not None:
        append_rows(rows, found.runs)
        written.append(rows)
    table = [asdict(row) for row in found.rows]
    reasons = [f"\n{row.sku}: {row.reason}" for row in found.rows if row.reason is not None]
    console.tell(json, lambda: table, lambda: [_table(found.rows, objective), *reasons], *written)
    if found.exit_code:
        raise typer.Exit(found.exit_code)


def _size(text: str) -> int:
    from milp_planner.inputs.quantities import parse_bytes

    try:
        return parse_bytes(text)
    except ValueError as error:
        raise BadInput(f"--base: {error}") from None


def _hardware(skus: str) -> dict[str, HardwareConfig]:
    from milp_planner.integrations.torchrec.service import hardware_of
    from scenarios.catalog import find_cluster

    names = [name.strip() for name in skus.split(",") if name.strip()]
    if not names:
        raise BadInput("--skus: found none; allowed: clusters, separated by commas")
    found: dict[str, HardwareConfig] = {}
    for name in names:
        cluster = find_cluster(name)
        if cluster.name in found:
            raise BadInput(f"--skus: two are called {cluster.name!r}; allowed: each name once")
        found[cluster.name] = hardware_of(cluster)
    return found


def _write(found: DryRun, folder: Path) -> list[Path]:
    from milp_planner.integrations.torchrec.sharding_plan import to_document

    folder.mkdir(parents=True, exist_ok=True)
    asked = found.request
    shape = asked.world_size, asked.local_world_size, asked.compute_device or "cuda"
    written = []
    for sku, result in found.results.items():
        if result.sharding_plan is None:
            continue
        path = folder / f"{sku}.json"
        write_json(path, to_document(result.sharding_plan, *shape))
        written.append(path)
    return written


def _table(rows: tuple[SkuRow, ...], objective: str) -> Grid:
    from milp_planner.drawing.grid import Grid
    from milp_planner.drawing.units import UNKNOWN, show_bytes

    lines = []
    for row in rows:
        figures, report = [UNKNOWN] * 4, row.report
        if report is not None:
            blame = report.held_up_by
            figures = [
                f"{report.milliseconds:.3f}",
                UNKNOWN if report.bound is None else f"{report.bound:.3f}",
                UNKNOWN if report.gap is None else f"{report.gap:.2%}",
                UNKNOWN if blame is None else str(blame.rank),
            ]
        hbm = show_bytes(row.hbm_bytes) if row.fits else UNKNOWN
        lines.append([row.sku, _verdict(row), *figures, hbm, show_bytes(row.hbm_capacity)])
    head = ("SKU", "fits", f"#{objective} ms", "#bound ms", "#gap", "#rank",
            "#HBM of tables", "#of")  # fmt: skip
    return Grid.plain(head, lines, {"SKU": 12})


def _verdict(row: SkuRow) -> str:
    if row.error:
        return "error"
    if row.fits is None:
        return "not known"
    return "yes" if row.fits else "no (proved)"
