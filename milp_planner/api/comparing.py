"""``compare``: every formulation on the same Instance, under every objective."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from formulations import Instance, Objective, Outcome, Settings, registry, solve
from formulations.check import Verdict, check
from formulations.errors import InstanceError, UnsupportedInstance
from formulations.fusion import mixed_groups, respread, without_fusion
from formulations.placement import Placement
from milp_planner.api.compiling import compile_for
from milp_planner.api.sources import ClusterSource, ModelSource

#: Every formulation but ``auto``, which only picks one of the others.
DEFAULT = tuple(name for name in registry.FORMULATIONS if name != "auto")
PUBLISHED = "dp, as published"
OBJECTIVES = tuple(objective.value for objective in Objective)


@dataclass(frozen=True, eq=False)
class Entry:
    """One row: a formulation asked for one objective, or a variant of its plan.

    Attributes
    ----------
    label : str
        The formulation, or what was done to its plan.
    asked : str
        The objective it was asked to minimise.
    outcome : Outcome or None
        None for a formulation that does not cover this instance (``note`` says why), and for
        variants.
    verdict : Verdict or None
        The solver-free check of its plan on the Instance; None without a plan.
    seconds : float or None
        None for variants, which take no time of their own.
    note : str
    """

    label: str
    asked: str
    outcome: Outcome | None
    verdict: Verdict | None
    seconds: float | None
    note: str = ""

    @property
    def feasible(self) -> bool | None:
        """Whether the check accepts its plan; None without one."""
        return None if self.verdict is None else self.verdict.feasible

    @property
    def objectives(self) -> dict[str, int]:
        """Its plan under all three objectives; empty without one."""
        return {} if self.verdict is None else self.verdict.objectives


@dataclass(frozen=True, eq=False)
class Comparison:
    """All rows, with the best bound known for each objective.

    Attributes
    ----------
    instances : dict of objective name to Instance
        The same tables, options and capacities; only the objective differs.
    entries : tuple of Entry
    bounds : dict of objective name to (int, str) or None
        Largest bound any formulation proved, with its name. It holds for every row.
    """

    instances: dict[str, Instance]
    entries: tuple[Entry, ...]
    bounds: dict[str, tuple[int, str] | None]

    def gap(self, entry: Entry) -> float | None:
        """(objective − best bound)/max(1, |objective|) of a feasible row's plan, else None."""
        best = self.bounds.get(entry.asked)
        value = entry.objectives.get(entry.asked)
        if best is None or value is None or not entry.feasible:
            return None
        return (value - best[0]) / max(1, abs(value))


def compare(
    model: ModelSource,
    cluster: ClusterSource,
    *,
    formulations: Sequence[str] = DEFAULT,
    objectives: Sequence[str] = OBJECTIVES,
    settings: Settings | None = None,
    on_start: Callable[[str, str], None] | None = None,
) -> Comparison:
    """Solve the same Instance with every formulation, for every objective.

    Parameters
    ----------
    model, cluster
        Objects, or paths of their YAML files.
    formulations, objectives
        Names; default: all.
    settings
        Limits of each single solve.
    on_start
        Called with formulation and objective before each solve.

    Returns
    -------
    Comparison

    Raises
    ------
    BadInput, InstanceError
        For malformed inputs or unknown names.
    """
    for name in formulations:
        registry.get(name)
    first = compile_for(model, cluster, objectives[0]).instance
    instances = {o: replace(first, objective=Objective(o)) for o in objectives}
    return compare_instances(instances, formulations, settings or Settings(), on_start)


def compare_instances(
    instances: dict[str, Instance],
    formulations: Sequence[str],
    settings: Settings,
    on_start: Callable[[str, str], None] | None = None,
) -> Comparison:
    """The same for Instances that exist already, one for each objective."""
    entries: list[Entry] = []
    for objective, instance in instances.items():
        for name in formulations:
            if settings.stop.is_set():
                break
            if on_start is not None:
                on_start(name, objective)
            entries += _entries(instance, name, settings_for(name, settings))
    bounds = {objective: _best_bound(entries, objective) for objective in instances}
    return Comparison(instances, tuple(entries), bounds)


def settings_for(name: str, settings: Settings) -> Settings:
    """The settings one formulation gets: of options ``dp.variant``, ``mip.solver``, its own.

    Raises
    ------
    InstanceError
        For an option that does not begin with a formulation's name and a dot.
    """
    own: dict[str, object] = {}
    for key, value in settings.options.items():
        owner, dot, option = key.partition(".")
        if not dot:
            raise InstanceError(f"option {key!r}: when several formulations run, write NAME.{key}")
        if registry.get(owner).name == name:
            own[option] = value
    return replace(settings, options=own)


def _entries(instance: Instance, name: str, settings: Settings) -> list[Entry]:
    """One formulation's row; for the DP also what becomes of the plan it was published with."""
    entry = _entry(instance, name, name, settings)
    if name != "dp" or not len(instance.fusion_groups) or entry.outcome is None:
        return [entry]
    aware = {**settings.options, "fusion_aware": True}
    fused = _entry(instance, name, "dp, fusion-aware", replace(settings, options=aware))
    return [*_as_run(instance, settings), fused]


def _entry(instance: Instance, name: str, label: str, settings: Settings) -> Entry:
    asked = instance.objective.value
    try:
        outcome = solve(instance, name, settings)
    except UnsupportedInstance as error:
        return Entry(label, asked, None, None, None, str(error))
    verdict = None if outcome.placement is None else check(instance, outcome.placement)
    return Entry(label, asked, outcome, verdict, outcome.seconds, outcome.note)


def _as_run(instance: Instance, settings: Settings) -> list[Entry]:
    """The DP as published (blind to fusion), and its plan as the runtime would run it."""
    asked = instance.objective.value
    blind = solve(without_fusion(instance), "dp", replace(settings, certificate=False))
    plan = blind.placement
    verdict = None if plan is None else check(instance, plan)
    rows = [Entry(PUBLISHED, asked, blind, verdict, blind.seconds, _mixed(instance, plan))]
    if plan is not None and verdict is not None and not verdict.feasible:
        run = respread(instance, plan)
        judged = None if run is None else check(instance, run)
        note = "" if run is not None else "a fusion group has no level that all its tables offer"
        rows.append(Entry("dp, as the runtime runs it", asked, None, judged, None, note))
    return rows


def _mixed(instance: Instance, plan: Placement | None) -> str:
    mixed = {} if plan is None else mixed_groups(instance, plan)
    if not mixed:
        return ""
    return f"mixes cache ratios in {len(mixed)} fusion group{'s' if len(mixed) > 1 else ''}"


def _best_bound(entries: Sequence[Entry], objective: str) -> tuple[int, str] | None:
    """The largest bound in integers, or else in floating point, that was proved for the Instance.

    A row solved on a relaxation (the DP as published) bounds nothing here.
    """
    outcomes = [
        (entry.label, entry.outcome)
        for entry in entries
        if entry.asked == objective and entry.outcome is not None and entry.label != PUBLISHED
    ]
    for exact in (True, False):
        known = [
            (outcome.bound, label)
            for label, outcome in outcomes
            if outcome.bound is not None
            and outcome.bound_source is not None
            and outcome.bound_source.exact is exact
        ]
        if known:
            return max(known, key=lambda pair: pair[0])
    return None
