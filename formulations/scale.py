"""Joint placement where one model is too large: bounds, packing, and neighbourhoods solved exactly.

Stages, each within a share of the time (or of the work) that is left: the LP over pooled places
and its certificate; the aggregate integer program and packings of its choices; the whole model in
CP-SAT where it is small enough; large-neighbourhood search; options ruled out by the best plan,
then the whole model again. Anytime: the best plan found is kept whenever it ends.

``work_limit`` counts CP-SAT's deterministic seconds; with ``workers=1`` a run is reproducible.
Settings of its own (``Settings.options``): ``whole_columns`` (int, default 40,000), the size up to
which the whole model is tried.
"""

from __future__ import annotations

from formulations.aggregate.model import AggregateSettings
from formulations.bounds.own import own_cost, usable
from formulations.bounds.pooled import machine_ip
from formulations.certify import (
    SymmetricLP,
    best_symmetric_lp,
    infeasibility_certificate,
    with_certificate,
)
from formulations.instance import Instance
from formulations.outcome import BoundSource, Outcome, StoppedBy, found, infeasible, nothing
from formulations.presolve import presolve
from formulations.search.context import Context
from formulations.search.exact import columns_of_whole, solve_whole
from formulations.search.filter import by_price, by_probing
from formulations.search.starts import Start, fallback, given, packed
from formulations.search.walk import walk
from formulations.settings import Clock, Settings

_WHOLE_COLUMNS = 40_000
_LAGRANGIAN = BoundSource("lagrangian", exact=True)


def solve(instance: Instance, settings: Settings, clock: Clock) -> Outcome:
    """Solve at scale; see :func:`formulations.solve.solve`.

    Returns
    -------
    Outcome
        With the best bound of all stages; ``optimal`` when plan and bound meet.
    """
    presolved = presolve(instance)
    stuck = presolved.empty_table(instance)
    if stuck is not None:
        name = instance.table_names[stuck]
        source = BoundSource("presolve", exact=True)
        return infeasible("scale", source, f"no option of table {name!r} is allowed and fits")
    context = Context(instance, settings, clock, presolved.kept & usable(instance))
    starts = list(given(context))
    lp = _lp(context)
    if lp is None and context.best is None:
        proof = infeasibility_certificate(instance)
        if proof is not None:
            return infeasible("scale", _LAGRANGIAN, certificate=proof)
    starts = _promising(starts + _packed(context, lp))
    if _small(context):
        _whole(context, starts, 0.1 if _close_already(context, starts) else 0.3)
    _walk(context, starts, 0.45)
    _close(context, lp)
    _walk(context, starts, 1.0)
    return _outcome(context, lp)


def _share(context: Context, share: float) -> float:
    """Seconds (or work units) that a share of what is left amounts to."""
    left = min(context.clock.remaining(), context.work_left())
    return share * left if left != float("inf") else 60.0 * share


def _lp(context: Context) -> SymmetricLP | None:
    seconds = None if context.reproducible else _share(context, 0.1)
    lp = best_symmetric_lp(context.instance, context.objective, time_limit=seconds)
    if lp is not None:
        context.lift(lp.bound, _LAGRANGIAN)
    return lp


def _packed(context: Context, lp: SymmetricLP | None) -> list[Start]:
    bound = lp.bound if lp is not None else (context.objective or 1)
    starts = list(packed(context, abs(bound), _share(context, 0.08)))
    return starts or [fallback(context, abs(bound))]


def _promising(starts: list[Start]) -> list[Start]:
    """Starts with a packed choice, the best compromise of promise and overflow first."""
    return sorted(starts, key=lambda s: s.promise * (1 + 0.1 * s.over))


def _small(context: Context) -> bool:
    limit = context.settings.options.get("whole_columns", _WHOLE_COLUMNS)
    assert isinstance(limit, int)
    return columns_of_whole(context) <= limit


def _close_already(context: Context, starts: list[Start]) -> bool:
    """Whether the best plan is near what the aggregate choices promise."""
    return context.objective is not None and context.objective <= 1.1 * starts[0].promise


def _far(context: Context, gap: float) -> bool:
    """Whether no plan is known, or the best one is further than this gap from the bound."""
    if context.objective is None or context.bound is None:
        return True
    return context.objective - context.bound > gap * abs(context.objective)


def _whole(context: Context, starts: list[Start], share: float) -> None:
    base = context.best or (starts[0].placement if starts else None)
    if base is not None and not context.over():
        solve_whole(context, base, _share(context, share), context.settings.seed)


def _walk(context: Context, starts: list[Start], share: float) -> None:
    amount = _share(context, share)
    if context.over() or not starts:
        return
    walk(context, starts, context.clock.seconds() + amount, amount)


def _close(context: Context, lp: SymmetricLP | None) -> None:
    """Rule out options by the best plan; then bound and search what is left."""
    if context.objective is None or context.over():
        return
    keep = context.keep & (own_cost(context.instance) < context.objective)
    if lp is not None:
        keep = by_price(context.instance, lp.certificate, keep, context.objective)
    context.keep = keep
    several = len(context.instance.machines) > 1 and not _far(context, 0.1)
    if several and columns_of_whole(context) <= 4 * _WHOLE_COLUMNS:
        limits = context.limits(
            _share(context, 0.2), context.settings.seed, context.settings.workers
        )
        settings = AggregateSettings(keep=keep, upper=context.objective - 1)
        result = machine_ip(context.instance, limits, settings)
        context.spend(result.work)
        _lift_below(context, result.bound, result.infeasible, result.source)
    if not context.over() and not context.reproducible and _small(context):
        by_probing(context, _share(context, 0.25), AggregateSettings())
    if not context.over() and _small(context):
        _whole(context, [], 0.6)


def _lift_below(
    context: Context, bound: int | None, nothing_left: bool, source: BoundSource
) -> None:
    """Take a bound that holds only for plans below the best one."""
    if nothing_left:
        context.lift(context.objective, source)
    elif bound is not None and context.objective is not None:
        context.lift(min(bound, context.objective), source)


def _outcome(context: Context, lp: SymmetricLP | None) -> Outcome:
    if context.refuted is not None:
        return infeasible("scale", context.refuted)
    if context.best is None:
        note = "no plan was found; this does not prove that none exists"
        outcome = nothing("scale", _stopped(context), note)
        outcome = outcome.with_(bound=context.bound, bound_source=context.source)
    else:
        outcome = found(
            context.instance, "scale", context.best, _stopped(context), context.bound,
            context.source,
        )  # fmt: skip
    if lp is not None and context.settings.certificate:
        outcome = with_certificate(context.instance, outcome, lp.certificate)
    return outcome.with_(detail={"work": round(context.work, 3)})


def _stopped(context: Context) -> StoppedBy:
    if context.clock.interrupted():
        return StoppedBy.INTERRUPTED
    if context.work_left() <= 0:
        return StoppedBy.WORK_LIMIT
    return StoppedBy.TIME_LIMIT if context.clock.over() else StoppedBy.EXHAUSTED
