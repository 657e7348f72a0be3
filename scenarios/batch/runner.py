"""A suite run into a folder: only what is missing is solved, every answer is kept at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from formulations.settings import available_cores
from milp_planner.features.batch.info import AssertionInfo
from milp_planner.features.plan.cache import PlanCache
from milp_planner.files import write_json
from milp_planner.plans.plan_file import read_plan
from scenarios.batch.assertions import check_assertions, judge
from scenarios.batch.execute import FAILED
from scenarios.batch.local import Task, run_local
from scenarios.batch.placements import told
from scenarios.batch.record import check_record
from scenarios.batch.scenario import expand
from scenarios.batch.sharing import Plans
from scenarios.batch.store import Record, Store
from scenarios.batch.suite import Suite

Engine = Literal["local", "ray"]
#: How often scenarios are solved again from better plans: those found then may be better again.
AGAIN = 20
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
    cache: str | Path | None = None,
) -> Batch:
    """Solve what a folder has no result of yet.

    Scenarios of the same inputs start from each other's plans for other objectives, and are solved
    again where such a plan is better (:mod:`scenarios.batch.sharing`).

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
    cache
        Folder where outcomes are kept, as in :func:`milp_planner.plan`; on a Ray cluster one that
        all its machines see. The records of what is answered from there have ``cached``.

    Raises
    ------
    BadInput
        For an input of the suite that is wrong, or a folder that cannot be used.
    MissingExtra
        When Ray is wanted and absent.
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
        todo = [task for task in tasks if not _settled(records.get(task[0]))]
        kept = len(tasks) - len(todo)
        tell(None, kept, len(tasks))
        plans_so_far = _plans(tasks, records, Path(output))
        rounds = _rounds(suite, plans_so_far, todo, records)
        for number, (few, started) in enumerate(rounds):
            answers = _engine(engine, few, workers or available_cores(), address, started)
            try:
                for record in answers:
                    plans_so_far.take(record, record.pop("placement", None))
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
    suite: Suite, known: Plans, todo: Sequence[Task], records: Mapping[str, Record]
) -> Iterator[tuple[Sequence[Task], Callable[[Task], Task]]]:
    """What to solve, and where each starts: all that is missing, then whatever a plan is better
    than that was made for another objective. (Counted work is to come out the same however long
    the others take: only what is solved again starts from plans then.)"""
    counted = suite.work_limit is not None
    yield todo, (lambda task: task) if counted else known.started
    for _ in range(AGAIN):
        beaten = list(known.beaten(records))
        if not beaten:
            return
        yield beaten, known.started


def _plans(tasks: Sequence[Task], records: Mapping[str, Record], folder: Path) -> Plans:
    """Plans of the records that are there, as far as the folder keeps them."""
    known = Plans(tasks)
    for key, record in records.items():
        path = folder / str(record.get("plan"))
        if record.get("plan") is not None and path.is_file() and known.shared(key):
            placement = read_plan(path).outcome.placement
            known.take(record, None if placement is None else told(placement))
    return known


def _with_plan_kept(record: Record, folder: Path) -> Record:
    """The record with the name of the file that its plan is in, instead of the plan."""
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


def _settled(record: Record | None) -> bool:
    return record is not None and record["status"] != FAILED
