"""A suite run into a folder: only what is missing is solved, every answer is kept at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from formulations.settings import available_cores
from milp_planner.features.batch.info import AssertionInfo
from milp_planner.files import write_json
from scenarios.batch.assertions import check_assertions, judge
from scenarios.batch.execute import FAILED
from scenarios.batch.local import Task, run_local
from scenarios.batch.record import check_record
from scenarios.batch.scenario import expand
from scenarios.batch.store import Record, Store
from scenarios.batch.suite import Suite

Engine = Literal["local", "ray"]
SUITE_FILE = "suite.json"
"""The suite as read, next to the results."""


@dataclass(frozen=True)
class Batch:
    """A suite's results so far.

    Attributes
    ----------
    suite : Suite
    tasks : tuple of (key, Scenario)
        All of it, in the order of the file.
    records : dict of key to record
        Those that are there.
    solved : int
        How many this call solved; the rest was there before.
    interrupted : bool
        Whether it was stopped before the end.
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
        """How many scenarios have each status."""
        return dict(Counter(record["status"] for record in self.results))

    @cached_property
    def judgements(self) -> tuple[AssertionInfo, ...]:
        """The suite's assertions against the records."""
        return tuple(judge(each, self.tasks, self.records) for each in self.suite.assertions)

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
) -> Batch:
    """Solve what a folder has no result of yet.

    Scenarios that failed (an error, a process that died) are tried again; whatever has an answer
    is kept. An interruption (``KeyboardInterrupt``) ends the solves that run and keeps the rest.

    Parameters
    ----------
    suite
    output
        Folder of the results; created where it is absent.
    folder
        Where the suite's relative paths start.
    engine
        ``local`` processes, or ``ray``.
    workers
        Solves side by side; default: all cores.
    address
        Of a running Ray cluster.
    on_record
        Called with (record, done, all) after every record is on the disk, and once with
        (None, kept, all) before the first.
    plans
        Whether the plan of every scenario solved now is written, to plans/KEY.json of the folder.

    Raises
    ------
    BadInput
        For an input of the suite that is wrong, or a folder that cannot be used.
    MissingExtra
        When Ray is wanted and absent.
    """
    scenarios = expand(suite, folder)
    check_assertions(suite.assertions, scenarios)
    tasks = tuple((scenario.key(), replace(scenario, keeps_plan=plans)) for scenario in scenarios)
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
        todo = [task for task in tasks if not _settled(records.get(task[0]))]
        kept = len(tasks) - len(todo)
        tell(None, kept, len(tasks))
        answers = _engine(engine, todo, workers or available_cores(), address)
        try:
            for record in answers:
                record = {"suite": suite.name, **_with_plan_kept(record, Path(output))}
                store.append(record)
                records[record["key"]] = record
                solved += 1
                tell(record, kept + solved, len(tasks))
        except KeyboardInterrupt:
            interrupted = True
        finally:
            answers.close()
    return Batch(suite, tasks, records, solved, interrupted)


def _with_plan_kept(record: Record, folder: Path) -> Record:
    """The record with the name of the file that its plan is in, instead of the plan."""
    document = record.pop("plan", None)
    if document is None:
        return record
    name = f"plans/{record['key']}.json"
    (folder / "plans").mkdir(exist_ok=True)
    write_json(folder / name, document)
    return {**record, "plan": name}


def _engine(engine: Engine, todo: Sequence[Task], workers: int, address: str | None) -> Any:
    if engine == "ray":
        from scenarios.batch.on_ray import run_on_ray

        return run_on_ray(todo, workers, address)
    return run_local(todo, workers)


def _settled(record: Record | None) -> bool:
    return record is not None and record["status"] != FAILED
