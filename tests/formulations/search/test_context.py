"""What the parts of the search share: it takes only what is better and true.

Callers wait for compiled loops as long as they like.
"""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from formulations.result.certificate import Certificate
from formulations.result.outcome import BoundSource
from formulations.runtime.timing import COMPILING
from formulations.search import loops as module
from formulations.search.context import Context, Either
from formulations.search.loops import Loops, loaded
from tests.formulations.search.searches import on, opened, three_on_two

SOURCE = BoundSource("lp", exact=True)


def begun(**changes: object) -> Context:
    """Nothing known yet of tables of cost 4, 3 and 3 on two ranks."""
    return opened(three_on_two(), time_limit=60, workers=1, **changes)


def test_only_better_plans_are_taken() -> None:
    """7, then 10 and 7 again are refused, then 6; the trace tells what was taken."""
    context = begun()
    offers = [
        context.offer(on(*ranks), "x") for ranks in ((0, 0, 1), (0, 0, 0), (0, 1, 0), (0, 1, 1))
    ]
    assert offers == [True, False, False, True]
    assert context.objective == 6
    assert context.best is not None and context.best.to_lists(0) == [[0]]
    assert [point.objective for point in context.clock.trace] == [7, 6]


def test_a_plan_that_the_check_rejects_is_refused() -> None:
    """Rank 2 does not exist."""
    context = begun()
    assert not context.offer(on(0, 1, 2), "x")
    assert context.best is None and context.objective is None


def test_only_higher_bounds_are_taken() -> None:
    """5, then 4 and nothing are passed over, then 6, which proves the plan of 6."""
    context = begun()
    for bound in (5, 4, None, 6):
        context.lift(bound, SOURCE)
    assert (context.bound, context.known.source) == (6, SOURCE)
    assert [point.bound for point in context.clock.trace] == [5, 6]
    assert not context.known.proved
    context.offer(on(0, 1, 1), "x")
    assert context.known.proved and context.over()


def test_how_far_the_plan_is_above_the_bound() -> None:
    """A plan of 7 over a bound of 5 is more than a third and less than a half above."""
    context = begun()
    assert context.known.above(9.0)  # nothing is known
    context.offer(on(0, 0, 1), "x")
    context.lift(5, SOURCE)
    assert context.known.above(1 / 3) and not context.known.above(1 / 2)


def test_options_that_cost_as_much_as_the_plan_go() -> None:
    """With a plan of 4 none is left for the table of 4, so that 4 is proved; with 6 all stay."""
    context = begun()
    assert context.left_below(6).all()
    assert context.left_below(4).tolist() == [False, True, True]
    context.drop()
    assert context.bound is None  # no plan yet
    context.offer(on(0, 1, 1), "x")
    context.drop()
    assert context.keep.all() and context.bound is None


def test_limits_stay_within_what_is_left() -> None:
    """Counted work: no more than remains, and the caller's own flag."""
    context = begun(work_limit=3.0)
    assert context.limits(2.0).work == 2.0
    context.clock.spend(2.5)
    left = context.limits(2.0, seed=7, workers=2, gap=0.1)
    assert left.work == pytest.approx(0.5)
    assert (left.seed, left.workers, left.gap) == (7, 2, 0.1)
    assert left.stop is context.settings.stop


def test_a_solve_on_the_wall_ends_when_all_is_over() -> None:
    """Its flag is the caller's, or that the search has closed."""
    context = begun()
    stop = context.limits(1.0).stop
    assert stop is not None and not stop.is_set()
    context.state.close()
    assert stop.is_set()


def test_either_flag_counts() -> None:
    """The event itself, or the question."""
    event, answer = threading.Event(), [False]
    either = Either(event, lambda: answer[0])
    assert not either.is_set()
    answer[0] = True
    assert either.is_set()
    answer[0] = False
    event.set()
    assert either.is_set()


def test_a_malformed_certificate_is_left_out_and_told() -> None:
    """A negative multiplier is a bug of whoever made it: it ends nothing, and the note tells it."""
    context = begun()
    malformed = Certificate("bound", 6, ([{"row": "cost", "times": -1}],), ({"use": [0]},))
    assert not context.accepts(context.instance, malformed)
    assert context.clock.certified is None
    assert len(context.clock.notes) == 1 and "malformed" in context.clock.notes[0]


def waiting_for(code: str) -> tuple[Loops, subprocess.Popen[bytes]]:
    """Loops with a process in the compiler's place."""
    loops = Loops(compile_apart=True)
    loops._compiling = subprocess.Popen([sys.executable, "-c", code])
    return loops, loops._compiling


def test_one_that_ends_is_waited_for() -> None:
    """Then the loops are there."""
    loops, compiler = waiting_for("import time; time.sleep(0.2)")
    assert loops.ready(lambda: False) and compiler.returncode == 0 and loaded()


def test_one_that_does_not_end_is_left_when_it_is_over() -> None:
    """The answer is no, and closing ends it."""
    loops, compiler = waiting_for("import time; time.sleep(600)")
    asked: list[int] = []
    assert not loops.ready(lambda: asked.append(1) is not None or len(asked) >= 3)
    assert len(asked) == 3
    loops.close()
    assert compiler.returncode != 0


def test_a_large_search_waits_for_the_compiler_first() -> None:
    """Until it ends, or until it is over."""
    loops, compiler = waiting_for("import time; time.sleep(0.2)")
    loops.compiled(lambda: False)
    assert compiler.returncode == 0
    loops, compiler = waiting_for("import time; time.sleep(600)")
    loops.compiled(lambda: True)
    assert compiler.poll() is None
    loops.close()


def test_the_working_folder_does_not_stand_in_for_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a clone, where the package is installed elsewhere, the installed loops are compiled."""
    (tmp_path / "formulations").mkdir()
    (tmp_path / "formulations" / "__init__.py").write_text("raise SystemExit(3)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "loaded", lambda: False)
    monkeypatch.setattr(module, "mark", lambda: tmp_path / "nothing is cached")
    loops = Loops(compile_apart=True)
    loops.prepare()
    compiler = loops._compiling
    assert compiler is not None and compiler.wait() == 0


def test_what_is_cached_is_loaded_without_a_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the mark stands, nothing is compiled in another process."""
    complete = tmp_path / "complete"
    complete.touch()
    monkeypatch.setattr(module, "loaded", lambda: False)
    monkeypatch.setattr(module, "mark", lambda: complete)
    loops = Loops(compile_apart=True)
    loops.prepare()
    assert loops._compiling is None and loops._loading is not None
    assert loops.ready(lambda: False) and hasattr(sys.modules[module._LOOPS], "tidy")


def test_seconds_are_those_of_the_compiler() -> None:
    """They stand still once it has ended."""
    before, began = COMPILING.seconds, time.perf_counter()
    module._timed(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.2)"]))
    told, passed = COMPILING.seconds - before, time.perf_counter() - began
    assert 0.2 <= told <= passed
    assert COMPILING.seconds - before == told


def test_one_compiler_serves_all_workers(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Every worker prepares the loops; only the first starts anything, and announces it, once in a
    process."""
    begun, loops = list[int](), Loops(compile_apart=True)
    of = subprocess.Popen

    def noted(*_: object, **__: object) -> object:
        begun.append(1)
        return of([sys.executable, "-c", "pass"])

    monkeypatch.setattr(module, "loaded", lambda: False)
    monkeypatch.setattr(module, "mark", lambda: None)
    monkeypatch.setattr(subprocess, "Popen", noted)
    monkeypatch.setattr(module, "_SAID", threading.Event())
    loops.prepare()
    assert caplog.messages == [module.ANNOUNCED]
    for _ in range(2):
        loops.prepare()
    loops.close()
    assert begun == [1]
    Loops(compile_apart=True).prepare()
    assert begun == [1, 1] and caplog.messages == [module.ANNOUNCED]
