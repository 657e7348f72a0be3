"""Every formulation, with settings that matter, on one random instance, against enumeration."""

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from formulations.errors import UnsupportedInstance
from formulations.instance import Instance, Scope
from formulations.result.check import check
from formulations.settings import Settings
from formulations.solve import solve
from tests.formulations.brute_force import brute_force
from tests.formulations.fuzz.generate import COSTS, Cost, generate, largest
from tests.formulations.fuzz.judge import wrongs

#: Numbers below this are moderate.
MODERATE = 2**40
Options = Callable[[Instance], Mapping[str, object]]


def _plain(instance: Instance) -> Mapping[str, object]:
    return {}


def _axes(instance: Instance) -> Mapping[str, object]:
    """The first two resources as the DP's axes, those of ranks or machines before the cluster's."""
    names = [r.name for r in sorted(instance.resources, key=lambda r: r.scope == Scope.CLUSTER)]
    return {"axes": (names * 2)[:2]} if names else {}


@dataclass(frozen=True)
class Contestant:
    """A formulation with settings; ``work`` is a deterministic limit, else time alone counts."""

    formulation: str
    options: Options = _plain
    work: float | None = None
    hint: bool = False


#: By the name that results carry. Plain ``auto`` is what a user gets without any settings.
CONTESTANTS: dict[str, Contestant] = {
    "auto": Contestant("auto"),
    "auto from a plan": Contestant("auto", hint=True),
    "cpsat": Contestant("cpsat"),
    "cpsat without symmetry": Contestant("cpsat", lambda i: {"symmetry": False}),
    "scale": Contestant("scale"),
    "scale by work": Contestant("scale", work=3.0),
    "mip": Contestant("mip"),
    "mip by CBC": Contestant("mip", lambda i: {"solver": "cbc"}),
    "dp": Contestant("dp", _axes),
    "dp with fusion": Contestant("dp", lambda i: {**_axes(i), "fusion_aware": True}),
    "greedy": Contestant("greedy"),
    "uniform": Contestant("greedy", lambda i: {"proposers": ["uniform"]}),
}


@dataclass(frozen=True)
class Result:
    """How one contestant did on one instance.

    Attributes
    ----------
    name : str
        Of the contestant.
    answer : str
        The status, ``refused`` (the formulation does not cover the instance) or ``crash``.
    wrong : tuple of str
        What is false in its answer.
    """

    name: str
    answer: str
    wrong: tuple[str, ...] = ()


def play(
    number: int, names: list[str], seconds: float, costs: dict[str, Cost] = COSTS
) -> list[Result]:
    """Judge contestants on the instance of a number, which also seeds the solvers."""
    instance = generate(number, costs)
    truth = brute_force(instance)
    if truth.placement is not None:
        verdict = check(instance, truth.placement)
        agree = verdict.objectives.get(instance.objective.value) == truth.objective
        if not (verdict.feasible and agree):
            return [Result("enumeration", "crash", (f"check says {verdict.violations}",))]
    found = []
    for name in names:
        one = CONTESTANTS[name]
        settings = Settings(
            time_limit=seconds, work_limit=one.work, workers=1 + number % 2, seed=number,
            hint=truth.placement if one.hint else None, options=dict(one.options(instance)),
        )  # fmt: skip
        found.append(_result(name, instance, truth.objective, one.formulation, settings))
    return [_second_opinion(result, found, instance) for result in found]


def _second_opinion(result: Result, found: list[Result], instance: Instance) -> Result:
    """Where numbers are moderate, ``mip`` must decide what ``cpsat`` decides."""
    cpsat = {r.answer for r in found if r.name == "cpsat"} & {"optimal", "infeasible"}
    second = result.name.startswith("mip") and largest(instance) < MODERATE
    if not second or not cpsat or result.answer in cpsat:
        return result
    return replace(result, wrong=(*result.wrong, f"{result.answer}, cpsat says {cpsat.pop()}"))


def _result(
    name: str, instance: Instance, truth: int | None, formulation: str, settings: Settings
) -> Result:
    try:
        outcome = solve(instance, formulation, settings)
    except UnsupportedInstance:
        return Result(name, "refused")
    except Exception as error:  # crashes are sought here: reported, and counted as wrong
        at = traceback.extract_tb(error.__traceback__)[-1]
        what = f"{type(error).__name__}: {error} ({at.filename}:{at.lineno})"
        return Result(name, "crash", (what,))
    return Result(name, outcome.status.value, tuple(wrongs(instance, truth, outcome)))
