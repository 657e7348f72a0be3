"""``milp-planner route``: which rank owns which keys, and how even the load is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from milp_planner.cli import console
from milp_planner.cli.options import JsonOption, argument, option, whole
from milp_planner.errors import BadInput, MissingExtra
from milp_planner.files import check_writable, write_atomically

if TYPE_CHECKING:
    from rich.console import RenderableType

    from cuda_routing.report import RouteInfo

PLOTS = (".svg", ".png", ".pdf")


def run(  # noqa: PLR0913 - one parameter an option is how Typer declares a command
    keys: Annotated[
        list[str],
        argument(
            "KEYS...",
            "Key files (.npy, raw .bin/.i64/.i32, .txt/.csv with one key per line, optionally "
            ".gz), or one distribution: uniform:ROWS, zipf:ALPHA:ROWS, strided:ROWS:STEP.",
        ),
    ],
    ranks: Annotated[int, option("--ranks N", "Number of ranks.", whole(1, 1 << 16))] = 8,
    dist_type: Annotated[
        str,
        option(
            "--dist-type NAMES",
            "all, or some of continuous, roundrobin, hash_roundrobin, hash_independent, "
            "comma-separated.",
        ),
    ] = "all",
    rows: Annotated[
        int | None,
        option(
            "--rows N", "Rows of the table; default: the largest key + 1.", whole(1, 10**11 - 1)
        ),
    ] = None,
    batch: Annotated[
        int, option("--batch N", "Lookups per rank and step.", whole(1, 10**10))
    ] = 65_536,
    row_bytes: Annotated[
        int, option("--row-bytes N", "Bytes of each row sent back.", whole(0, 10**7))
    ] = 512,
    plot: Annotated[
        Path | None, option("--plot FILE", "Draw the loads (.svg, .png or .pdf).")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show which rank owns which keys, and how even each routing rule is.

    Counts all lookups, and also only those left if each rank asks for each key once per step.
    Files may be larger than memory. No GPU is needed.
    """
    from cuda_routing.errors import RoutingError
    from cuda_routing.report import route_report

    if plot is not None:
        check_plot(plot)
    rules = None if dist_type == "all" else [name.strip() for name in dist_type.split(",")]
    try:
        info = route_report(keys, ranks, rules, rows=rows, batch=batch, row_bytes=row_bytes)
    except RoutingError as error:
        raise BadInput(str(error)) from None
    if plot is not None:
        save_plot(info, plot)
    console.tell(json, info.to_dict, lambda: draw(info))


def check_plot(path: Path) -> None:
    """Refuse a plot of an unknown kind, or in a place that cannot be written."""
    from importlib.util import find_spec

    if path.suffix.lower() not in PLOTS:
        raise BadInput(f"{path}: a plot is one of {', '.join(PLOTS)}")
    if find_spec("matplotlib") is None:
        raise MissingExtra(
            "--plot needs matplotlib, which is not installed: pip install 'milp-planner[plot]'"
        )
    check_writable(path)


def save_plot(info: RouteInfo, path: Path) -> None:
    """Write the plot, completely or not at all."""
    from io import BytesIO

    from cuda_routing.plot import draw_route

    buffer = BytesIO()
    draw_route(info).savefig(buffer, format=path.suffix[1:].lower())
    write_atomically(path, buffer.getvalue())


def draw(info: RouteInfo) -> list[RenderableType]:
    """Tables of rules and of hot keys, and the advice."""
    counted = "" if info.lookups is None else f", {info.lookups:,} lookups"
    head = f"{info.source} on {info.ranks} ranks{counted}"
    rest = f"{info.sent_share:.1%} of the lookups are different keys of a step's {info.batch:,}"
    advice = f"use {info.advice.rule.dist_type}: {info.advice.reason}"
    parts: list[RenderableType] = [head, _rules(info), rest]
    if info.hottest:
        parts += _hot_keys(info)
    return [*parts, advice, *([info.advice.advice] if info.advice.advice else [])]


def _rules(info: RouteInfo) -> RenderableType:
    from milp_planner.drawing.grid import Cell, Grid

    rows = [
        (
            rule.dist_type,
            f"{found.max_over_mean:.3f}",
            f"{found.gini:.3f}",
            f"{found.hottest_rank} ({found.loads.max():.1%})",
            Cell.amount(info.hot_rank_bytes(rule)),
            f"{info.after_dedup[rule].max_over_mean:.3f}",
        )
        for rule, found in info.balances.items()
    ]
    head = ("dist_type", "#max/mean", "#Gini", "#busiest rank", "#its bytes a step",
            "#max/mean, dedup")  # fmt: skip
    return Grid.plain(head, rows)


def _hot_keys(info: RouteInfo) -> list[RenderableType]:
    from milp_planner.drawing.grid import Grid

    rows = [
        [str(hot.key), f"{hot.share:.2%}", *(str(hot.owner[rule]) for rule in info.balances)]
        for hot in info.hottest
    ]
    head = ("hottest keys", "#share", *(f"#{rule.dist_type}" for rule in info.balances))
    return ["their rank under each dist_type", Grid.plain(head, rows)]
