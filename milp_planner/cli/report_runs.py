"""``milp-planner report`` of what is no plan: a batch's folder, a comparison."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

    from milp_planner.report.batch import BatchInfo
    from scenarios.batch.runner import Batch


def report_batch(folder: Path, target: Path | None, terminal: bool, json: bool) -> None:
    """The page, terminal pictures or JSON of a batch's folder."""
    from milp_planner.report.html.batch import render_batch
    from milp_planner.report.terminal.batch import draw_figures
    from scenarios.batch import read_batch

    info = info_of(read_batch(folder))
    _give(info, render_batch, draw_figures, target, terminal, json)


def report_comparison(path: Path, target: Path | None, terminal: bool, json: bool) -> None:
    """The page, terminal tables or JSON of what ``compare -o`` wrote."""
    from milp_planner.report.comparison import read_comparison
    from milp_planner.report.html.compare import render_comparison
    from milp_planner.report.terminal.comparison import draw_comparison

    _give(read_comparison(path), render_comparison, draw_comparison, target, terminal, json)


def info_of(batch: Batch) -> BatchInfo:
    """The figures of a batch."""
    from milp_planner.report.batch import batch_of

    suite = batch.suite
    return batch_of(
        suite.name, suite.description, len(batch.tasks), batch.results, batch.judgements
    )


def _give(
    info: Any,
    render: Callable[[Any], str],
    draw: Callable[[Any], RenderableType],
    target: Path | None,
    terminal: bool,
    json: bool,
) -> None:
    from milp_planner.cli import console
    from milp_planner.files import write_atomically

    if target is not None:
        write_atomically(target, render(info))
    if json:
        console.emit_json(info.to_dict())
        return
    if terminal:
        console.out().print(draw(info))
    if target is not None:
        console.out().print(f"written: {target}")
