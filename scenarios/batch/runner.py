"""Run a suite into a folder: only missing results are solved, and each is stored at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from formulations.settings import available_cores
from milp_planner.features.plan.cache import PlanCache
from milp_planner.files import write_json
from scenarios.batch.assertions import check_assertions, judge
from scenarios.batch.execute import FAILED
from scenarios.batch.info import AssertionInfo, BatchInfo, batch_of
from scenarios.batch.local import Task, run_local
from scenarios.batch.record import check_record
from scenarios.batch.scenario import expand
from scenarios.batch.sharing import Findings
from scenarios.batch.store import Record, Store
from scenarios.batch.suite import Suite

Engine = Literal["local", "ray"]
SUITE_FILE = "suite.json"
"""The suite, stored next to the results."""


@dataclass(frozen=True)
class Batch:
    """A suite's results so far.

    Attributes
    ----------
    suite : Suite
    tasks : tuple of (key, Scenario)
        All scenarios, in the order of the file.
    records : dict of key to record
        The results so far.
    solved : int
        Number of scenarios that this call solved; the other results were there before.
    interrupted : bool
        Whether the run was interrupted.
    """

    suite: Suite
    tasks: tuple[Task, ...]
    records: dict[str, Record]
    solved: int
    interrupted: bool

    @property
    def results(self) -> list[Record]:
        """Records in the order of the suite."""
        return [self.records[key] for key, _ in self.tasks if key in self.records]

    @property
    def counts(self) -> dict[str, int]:
        """Number of scenarios with each status."""
        return dict(Counter(record["status"] for record in self.results))

    @cached_property
    def judgements(self) -> tuple[AssertionInfo, ...]:
        """The suite's assertions, evaluated on the records."""
        return tuple(judge(each, self.tasks, self.records) for each in self.suite.assertions)

    @property
    def info(self) -> BatchInfo:
        """The figures of its page."""
        suite, tasks = self.suite, len(self.tasks)
        return batch_of(suite.name, suite.description, tasks, self.results, self.judgements)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        return {
            "suite": self.suite.name,
            "scenarios": len(self.tasks),
            "solved": self.solved,
            "kept": len(self.results) - self.solved,
            "interrupted": self.interrupted,
            "counts": self.counts,
            "assertions": [asdict(judgement) for judgement in self.judgements],
            "results": self.results,
        }


def run_batch(  # noqa: PLR0913 - the keywords of a public call
    suite: Suite,
    output: str | Path,
    *,
    folder: str | Path = ".",
    engine: Engine = "local",
    workers: int | None = None,
    address: str | None = None,
    on_record: Callable[[Record | None, int, int], None] | None = None,
    plans: bool = False,
    cache: str | Path | None = None,
) -> Batch:
    """Solve the scenarios of a suite for which a folder has no result.

    Scenarios share what they find (:mod:`scenarios.batch.sharing`): plans for other objectives, and
    plans, bounds and certificates for other memory.

    Scenarios that failed (an error, a process that died) are tried again; all other results are
    kept. An interruption (``KeyboardInterrupt``) ends the running solves and keeps all results.

    Parameters
    ----------
    suite
    output
        Folder of the results; created if it does not exist.
    folder
        Folder that the suite's relative paths start from.
    engine
        ``local`` processes, or ``ray``.
    workers
        Number of solves at the same time; default: all cores.
    address
        Address of a running Ray cluster.
    on_record
        Called with (record, done, all) after every record is written to disk, and once with
        (None, kept, all) before the first.
    plans
        Whether to write the plan of every scenario solved now to plans/KEY.json in the folder.
    cache
        Folder of cached outcomes, as in :func:`milp_planner.plan`; on a Ray cluster, one that all
        machines can access. Records of outcomes from the cache have ``cached``.

    Raises
    ------
    BadInput
        For a wrong input of the suite, or a folder that cannot be used.
    MissingExtra
        When Ray is requested but not installed.
    """
    scenarios = expand(suite, folder)
    check_assertions(suite.assertions, scenarios)
    answers_in = "" if cache is None else str(PlanCache(cache).folder.resolve())
    tasks = tuple((s.key(), replace(s, keeps_plan=plans, cache=answers_in)) for s in scenarios)
    tell = on_record or (lambda *_: None)
    solved, interrupted = 0, False
    with Store(output) as store:
        write_json(Path(output) / SUITE_FILE, suite.to_dict())
        ours = {key for key, _ in tasks}
        records = {
            key: check_record(record, output)
            for key, record in store.latest().items()
            if key in ours
        }
        settled = {key for key, record in records.items() if record["status"] != FAILED}
        todo = [task for task in tasks if task[0] not in settled]
        kept = len(tasks) - len(todo)
        tell(None, kept, len(tasks))
        known = Findings(tasks, Path(output), counted=suite.work_limit is not None)
        for record in records.values():
            known.take(record)
        for number, (few, started) in enumerate(_rounds(known, todo)):
            answers = _engine(engine, few, workers or available_cores(), address, started)
            try:
                for record in answers:
                    known.take(record, record.pop("outcome", None))
                    record = {"suite": suite.name, **_with_plan_kept(record, Path(output))}
                    store.append(record)
                    records[record["key"]] = record
                    solved += number == 0
                    tell(record, kept + solved, len(tasks))
            except KeyboardInterrupt:
                interrupted = True
                break
            finally:
                answers.close()
    return Batch(suite, tasks, records, solved, interrupted)


def _rounds(
    known: Findings, todo: Sequence[Task]
) -> Iterator[tuple[Sequence[Task], Callable[[Task], Task]]]:
    """The tasks to solve, and what each starts from: first all missing ones, then, until there are
    none, those that can take something better than they have."""
    yield todo, known.started
    while behind := list(known.behind()):
        yield behind, lambda task: task


def _with_plan_kept(record: Record, folder: Path) -> Record:
    """The record with its plan replaced by the name of the plan's file."""
    document = record.pop("plan", None)
    if document is None:
        return record
    name = f"plans/{record['key']}.json"
    (folder / "plans").mkdir(exist_ok=True)
    write_json(folder / name, document)
    return {**record, "plan": name}


def _engine(
    engine: Engine, todo: Sequence[Task], workers: int, address: str | None,
    started: Callable[[Task], Task],
) -> Any:  # fmt: skip
    if engine == "ray":
        from scenarios.batch.on_ray import run_on_ray

        return run_on_ray(todo, workers, address, started)
    return run_local(todo, workers, started)
