"""``milp-planner batch``: run a suite of scenarios in parallel; a run can be resumed."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from milp_planner.cli import console
from milp_planner.cli.failures import FALLS_SHORT, INTERNAL, INTERRUPTED
from milp_planner.cli.options import CacheOption, JsonOption, NoCacheOption, argument, option, whole
from milp_planner.cli.readers import find_cache
from milp_planner.errors import BadInput

if TYPE_CHECKING:
    from scenarios.batch.runner import Batch


def run(  # noqa: PLR0913 - one parameter an option is how Typer declares a command
    suite: Annotated[
        str,
        argument(
            "SUITE", "Suite YAML file, or the name of a shipped suite (milp-planner list suites)."
        ),
    ],
    output: Annotated[Path, option("--output -o DIR", "Folder for the results.")],
    workers: Annotated[
        int | None,
        option(
            "--workers N",
            "Scenarios solved in parallel, each with one solver thread; default: all cores.",
            whole(1, 1024),
        ),
    ] = None,
    engine: Annotated[
        Literal["local", "ray"],
        option("--engine", "Processes on this machine, or a Ray cluster."),
    ] = "local",
    address: Annotated[
        str | None,
        option(
            "--address ADDRESS",
            "Address of a running Ray cluster; default: Ray on this machine only.",
        ),
    ] = None,
    plans: Annotated[
        bool, option("--plans", "Keep the plan of every scenario solved in this run, in DIR/plans.")
    ] = False,
    cache: CacheOption = None,
    no_cache: NoCacheOption = False,
    query: Annotated[
        str | None,
        option("--query SQL", "SQLite query to run at the end, on the table named results."),
    ] = None,
    rows: Annotated[
        Path | None,
        option(
            "--rows FILE",
            "Append a row about every scenario solved in this run, with the columns of "
            "torchrec-dry-run --rows. FILE.jsonl, FILE.sqlite or FILE.db (table runs).",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Run a suite of scenarios; run it again to resume.

    Each result is a line in DIR/results.jsonl, written to disk as soon as it is known, so Ctrl-C, a
    crash or a kill loses at most the solves in progress. A scenario that fails is recorded and
    retried by the next run. Exit code 1 if an assertion of the suite does not hold, 70 if a
    scenario failed.
    """
    from scenarios.batch import find_suite, run_batch

    if address is not None and engine != "ray":
        raise BadInput("--address: needs --engine ray")
    kept = find_cache(cache, no_cache)
    found, folder = find_suite(suite)
    if query is not None:
        _answer(output, query)  # report mistakes before solving anything
    solved: list[dict[str, Any]] = []
    with (
        _rows_of(solved, rows),
        _terminated_as_interrupted(),
        _progress(found.name, solved) as note,
    ):
        batch = run_batch(
            found, output, folder=folder, engine=engine, workers=workers, address=address,
            on_record=note, plans=plans, cache=None if kept is None else kept.folder,
        )  # fmt: skip
    answer = None if query is None else _answer(output, query)
    if json:
        extra = {} if answer is None else {"query": answer}
        console.emit_json({**batch.to_dict(), **extra})
    else:
        _show(batch, answer, output)
    _finish(batch)


@contextmanager
def _rows_of(solved: list[dict[str, Any]], path: Path | None) -> Iterator[None]:
    """Append rows of what was solved meanwhile, also when that ends in an error."""
    if path is None:
        yield
        return
    from milp_planner.plans.run_rows import append_rows, check_rows_file
    from scenarios.batch.rows import run_rows

    check_rows_file(path)
    try:
        yield
    finally:
        append_rows(path, run_rows(solved))


def _finish(batch: Batch) -> None:
    from scenarios.batch.execute import FAILED

    if batch.interrupted:
        raise typer.Exit(INTERRUPTED)
    if any(judgement.holds is False for judgement in batch.judgements):
        raise typer.Exit(FALLS_SHORT)
    if FAILED in batch.counts:
        raise typer.Exit(INTERNAL)


def _answer(folder: Path, query: str) -> list[dict[str, Any]]:
    import sqlite3

    from scenarios.batch import connect

    try:
        return [dict(row) for row in connect(folder).execute(query)]
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise BadInput(f"--query: {error}; allowed: one SELECT of the table results") from None


def _show(batch: Batch, rows: list[dict[str, Any]] | None, folder: Path) -> None:
    from scenarios.batch.info import draw_batch, draw_rows

    out = console.out()
    out.print(draw_batch(batch.info))
    if rows is not None:
        out.print(draw_rows(rows))
    left = len(batch.tasks) - len(batch.results)
    again = f"; {left} left, the same command goes on" if left else ""
    out.print(f"{batch.solved} solved now, {len(batch.results) - batch.solved} kept{again}")
    out.print(f"written: {folder}/results.jsonl; as a page: milp-planner report {folder}")


@contextmanager
def _progress(
    name: str, solved: list[dict[str, Any]]
) -> Iterator[Callable[[dict[str, Any] | None, int, int], None]]:
    """Keep what is solved; on a terminal, show a progress bar with the time left."""
    err = console.err()

    def keep(record: dict[str, Any] | None, *_: int) -> None:
        if record is not None:
            solved.append(record)

    if not err.is_terminal:
        yield keep
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(),
        TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    failed = 0
    with Progress(*columns, console=err, transient=True, speed_estimate_period=600) as bar:
        task = bar.add_task(name, total=None)

        def note(record: dict[str, Any] | None, done: int, total: int) -> None:
            nonlocal failed
            keep(record)
            failed += record is not None and record["status"] == "failed"
            text = f"{name} ({failed} failed)" if failed else name
            bar.update(task, completed=done, total=total, description=text)

        yield note


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C: end the worker processes and keep the results."""

    def stop(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
