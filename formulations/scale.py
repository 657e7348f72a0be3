"""Joint placement where one model is too large: bounds, packing, and neighbourhoods solved exactly.

Stages, each within a share of the time (or of the work) that is left:

1. plans at hand, and bounds: the LP over pooled places with its certificate, the aggregate integer
   program, on small instances also with machines kept apart; their choices of options, packed;
2. where it is small, the whole model in CP-SAT over a *core*: the options nearest to what the LP
   chooses;
3. large-neighbourhood search;
4. with the best plan, options ruled out by price and by probing; machines kept apart for the
   bound; the whole model over what is left, which may prove the plan;
5. large-neighbourhood search until the end.

Anytime: the best plan found is kept whenever it ends.

``work_limit`` counts CP-SAT's deterministic seconds; with ``workers=1`` a run is reproducible.
Settings of its own (``Settings.options``): ``whole_columns`` (int, default 12,000), the size up to
which a whole model is tried at all; to improve a plan, up to 5,000 at most.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from formulations.bounds.own import own_cost, usable
from formulations.bounds.pooled import PooledBound, machine_ip
from formulations.clock import Clock
from formulations.instance import Instance
from formulations.model.build import Parts
from formulations.model.linear import FREE
from formulations.options import whole
from formulations.presolve import presolve
from formulations.proof.prove import SymmetricLP, prove_infeasible, symmetric_lp
from formulations.result.certify import with_certificate
from formulations.result.check import check
from formulations.result.outcome import BoundSource, Outcome, StoppedBy, found, infeasible, nothing
from formulations.search.context import Context
from formulations.search.exact import columns_of_whole, improve_whole, repair_whole, solve_whole
from formulations.search.filter import by_price, by_probing, core
from formulations.search.pack import Packer
from formulations.search.starts import Start, fallback, given, pack_best, packed
from formulations.search.walk import DEAR, walk
from formulations.settings import Settings
from formulations.solvers.cpsat import solver

OPTIONS = {"whole_columns": whole()}
_WHOLE_COLUMNS = 12_000
#: Size up to which CP-SAT finds better plans on the whole than by neighbourhoods.
_SEARCHED_WHOLE = 5_000
#: Options of the first core: this many, or this many a table.
_CORE, _CORE_PER_TABLE = 400, 4
#: Gap above which no option is likely to be ruled out by probing.
_NEAR = 0.01
#: Turns of neighbourhood search, and the seconds (or work) one takes at least.
_TURNS, _SLICE = 6, 2.0
#: Options of the first core cost alone at most this share of what packed choices promise; those
#: of the next core more, and much more where the last one held no plan.
_DEAREST, _WIDER, _MUCH_WIDER = 1.01, 1.1, 4.0
#: A packed choice is repaired until it costs this share of its promise, or at least this one.
_REACH = (1.2, 1.5)
#: The program that keeps machines apart is asked for choices up to this multiple of the bound.
_PROMISED = 1.2
BoolArray = NDArray[np.bool_]

_CERTIFICATE = BoundSource("certificate", exact=True)


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
    if lp is None and context.best is None and not clock.over():
        seconds = None if context.reproducible else _share(context, 0.3)
        proof = prove_infeasible(instance, seconds, settings.stop)
        if proof is not None:
            return infeasible("scale", _CERTIFICATE, certificate=proof)
    starts += _packed(context, lp)
    starts = _promising(instance, _by_machine(context, starts))
    _cores(context, lp, starts, 0.3)
    _improve(context, starts, 0.25 if _small(context, context.keep) else 0.7)
    _close(context, lp, starts)
    _improve(context, starts, 1.0)
    return _outcome(context, lp)


def _share(context: Context, share: float) -> float:
    """Seconds (or work units) that a share of what is left amounts to."""
    return context.clock.share(share)


def _lp(context: Context) -> SymmetricLP | None:
    seconds = None if context.reproducible else _share(context, 0.15)
    stop = context.settings.stop
    lp = symmetric_lp(context.instance, context.objective, time_limit=seconds, stop=stop)
    if lp is not None:
        context.lift(lp.bound, _CERTIFICATE)
    return lp


def _packed(context: Context, lp: SymmetricLP | None) -> list[Start]:
    bound = lp.bound if lp is not None else (context.objective or 1)
    starts = list(packed(context, abs(bound), _share(context, 0.08)))
    return starts or [fallback(context, abs(bound))]


def _by_machine(context: Context, starts: list[Start]) -> list[Start]:
    """Adds the choice of the program that keeps machines apart, packed; its bound counts as well.

    Where machines cannot share memory it promises far more than the one that pools them, and
    less does not come true: then no start promises less than the bound.
    """
    several = len(context.instance.machines) > 1
    if not several or not _searched_whole(context) or context.over() or context.reproducible:
        return starts
    upper = int(_PROMISED * (context.bound or min(start.promise for start in starts)))
    if context.objective is not None:
        upper = min(upper, context.objective - 1)
    result = _machines(context, 0.35, max(0, upper))
    if result.options is not None and result.value is not None:
        packer = Packer(context.instance, context.costs)
        packed_ = pack_best(context, packer, result.options, result.value, len(starts))
        starts = [*starts, packed_]
    least = context.bound if context.bound is not None else -FREE
    return [replace(start, promise=max(start.promise, least)) for start in starts]


def _promising(instance: Instance, starts: list[Start]) -> list[Start]:
    """The best compromise of promise and overflow first, those that hold a dear option last."""
    own, promise = own_cost(instance), min(start.promise for start in starts)

    def rank(start: Start) -> tuple[bool, float]:
        dearest = int(own[start.placement.options].max(initial=0))
        return dearest > DEAR * promise, start.promise * (1 + 0.1 * start.over)

    return sorted(starts, key=rank)


def _small(context: Context, keep: BoolArray) -> bool:
    limit = context.settings.options.get("whole_columns", _WHOLE_COLUMNS)
    assert isinstance(limit, int)
    return columns_of_whole(context, keep) <= limit


def _searched_whole(context: Context) -> bool:
    columns = columns_of_whole(context, context.keep)
    return columns <= _SEARCHED_WHOLE and _small(context, context.keep)


def _cores(context: Context, lp: SymmetricLP | None, starts: list[Start], share: float) -> None:
    """The whole model over cores of growing size, as long as smaller ones are solved out.

    Options that alone cost much more than the aggregate's choice promises are left out at first:
    from a plan that holds one, no neighbourhood finds the way down, as the table must change its
    option and many others make room. So a packed choice is repaired and searched from instead,
    unless the best plan is as good.
    """
    promise = min(start.promise for start in starts)
    if context.best is not None and not _searched_whole(context):
        context.core = context.cheap(int(_DEAREST * promise))
        return
    size = max(_CORE, _CORE_PER_TABLE * context.instance.num_tables)
    left, dearest = _share(context, share), int(_DEAREST * promise)
    while not context.over() and left > 0:
        before = context.spent()
        context.core = _core(context, lp, dearest, size)
        if not _small(context, context.core):
            context.core = context.keep  # neighbourhoods need the options in between as well
            return
        base = context.best
        if base is None or not context.core[base.options].all():
            base = starts[0].placement
            for reach in _REACH:
                base = repair_whole(context, base, left / 6, context.core, int(reach * promise))
                if check(context.instance, base).feasible:
                    break
            starts[0] = replace(starts[0], placement=base)
        result = solve_whole(context, base, left + before - context.spent(), context.core)
        planned = result.values is not None
        if (planned and not result.done) or context.core is context.keep:
            return
        left += before - context.spent()
        wider = _WIDER if planned else _MUCH_WIDER
        size, dearest = 2 * size, max(dearest + 1, int(wider * dearest))


def _core(context: Context, lp: SymmetricLP | None, dearest: int, size: int) -> BoolArray:
    keep = context.keep if lp is None else context.cheap(dearest)
    if lp is None or keep is context.keep:
        return context.keep
    keep = core(context.instance, lp.certificate, keep, size)
    return keep if keep.sum() < context.keep.sum() else context.keep


def _improve(context: Context, starts: list[Start], share: float) -> None:
    """Large-neighbourhood search by turns: ours, over ranks and tables, and CP-SAT's own."""
    left, turn = _share(context, share), 0
    turns = _TURNS if _searched_whole(context) else 1
    slice_ = max(left / turns, min(left, _SLICE))
    while not context.over() and left > 0 and context.instance.num_tables:
        before, amount = context.spent(), min(left, slice_)
        keep = context.core if turn % 4 < 2 else context.keep
        if turn % 2 == 0 and context.best is not None and _searched_whole(context):
            improve_whole(context, amount, keep, context.settings.seed + turn)
        else:
            walk(context, starts, context.clock.seconds() + amount, amount, turn)
        left -= max(context.spent() - before, 1e-3 * slice_)
        turn += 1


def _close(context: Context, lp: SymmetricLP | None, starts: list[Start]) -> None:
    """Rule out options by the best plan; then bound and search what is left."""
    if context.over():
        return
    if context.best is None or context.objective is None:
        if _small(context, context.keep):
            solve_whole(context, starts[0].placement, _share(context, 0.75), context.keep)
        return
    keep = context.keep & (own_cost(context.instance) < context.objective)
    if lp is not None:
        keep = by_price(context.instance, lp.certificate, keep, context.objective)
    context.keep, context.core = keep, context.core & keep
    if len(context.instance.machines) > 1 and _small(context, keep):
        _machines(context, 0.4 if _searched_whole(context) else 0.15, context.objective - 1)
    near = context.objective - (context.bound or 0) <= _NEAR * abs(context.objective)
    if near and not context.over() and not context.reproducible and _small(context, keep):
        by_probing(context, _share(context, 0.25), Parts())
        context.core = context.core & context.keep
    if not context.over() and _searched_whole(context):
        solve_whole(context, context.best, _share(context, 0.75), context.keep)
    if context.float_filtered and context.met and not context.over():
        _close_exactly(context, keep)


def _close_exactly(context: Context, keep: BoolArray) -> None:
    """The whole model once more, without what floating point dropped: that proved no optimum."""
    assert context.best is not None
    context.keep, context.float_filtered = keep, False
    solve_whole(context, context.best, _share(context, 1.0), keep)


def _machines(context: Context, share: float, upper: int) -> PooledBound:
    """The bound of the program that keeps machines apart, over the options left."""
    limits = context.limits(_share(context, share), context.settings.seed, context.settings.workers)
    result = machine_ip(context.instance, limits, Parts(keep=context.keep, limit=upper))
    context.spend(result.work)
    _lift_below(context, result.bound, result.infeasible, result.source, upper)
    return result


def _lift_below(
    context: Context, bound: int | None, nothing_left: bool, source: BoundSource, upper: int
) -> None:
    """Take a bound that holds only for plans of at most ``upper``."""
    if nothing_left:
        context.lift(upper + 1, source)
    elif bound is not None:
        context.lift(min(bound, upper + 1), source)


def _outcome(context: Context, lp: SymmetricLP | None) -> Outcome:
    if context.refuted is not None:
        return infeasible("scale", context.refuted, placement=context.best, **solver())
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
    return outcome.with_(detail={"work": round(context.work, 3)}, **solver())


def _stopped(context: Context) -> StoppedBy:
    if context.clock.interrupted():
        return StoppedBy.INTERRUPTED
    if context.work_left() <= 0:
        return StoppedBy.WORK_LIMIT
    return StoppedBy.TIME_LIMIT if context.clock.over() else StoppedBy.EXHAUSTED
