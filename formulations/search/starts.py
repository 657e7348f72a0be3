"""Plans to start from: what the caller has, what is in production, greedy, and packed choices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from formulations import registry
from formulations.baselines.start import current_plan
from formulations.bounds.own import own_cost
from formulations.bounds.pooled import exact_pooled_ip, pooled_ip
from formulations.clock import Clock
from formulations.errors import UnsupportedInstance
from formulations.instance import IntArray, Objective
from formulations.model.build import Parts, build
from formulations.model.partition import by_class
from formulations.result.check import check
from formulations.result.outcome import BoundSource
from formulations.result.placement import Placement
from formulations.search.context import Context
from formulations.search.lns import excess
from formulations.search.pack import Packer
from formulations.search.shift import shift
from formulations.search.state import load_of, overflow
from formulations.settings import Settings
from formulations.solvers.answer import Found
from formulations.solvers.highs import solve_highs

#: Shares of every capacity that option choices may fill, so that packing has room.
SLACKS = (1.0, 0.99, 0.97, 0.94, 0.9, 0.8)
_TRIES = 6
#: Tables up to which the DP's plan is worth its time.
_DP_UP_TO = 100
_HALVINGS = 9

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Start:
    """A placement, perhaps infeasible, and what its choice of options promises.

    Attributes
    ----------
    placement : Placement
    promise : int
        Objective of the aggregate solution it was packed from (its own for given plans).
    over : float
        Overflow of capacities and of the promise.
    """

    placement: Placement
    promise: int
    over: float


def given(context: Context) -> Iterator[Start]:
    """The caller's hint, the current plan, greedy's, and the DP's where the instance is small."""
    instance, settings = context.instance, context.settings
    if settings.hint is not None:
        yield from _as_start(context, settings.hint)
    current = current_plan(instance)
    if current is not None:
        yield from _as_start(context, current)
    for placement in (_greedy(context), _dp(context)):
        if placement is not None:
            yield from _as_start(context, placement)


def _as_start(context: Context, placement: Placement) -> Iterator[Start]:
    verdict = check(context.instance, placement)
    if verdict.loads is None:
        return
    objective = verdict.objectives[context.instance.objective.value]
    load = load_of(context.instance, context.costs, placement, range(context.instance.num_tables))
    context.offer(placement, "start")
    yield Start(placement, objective, overflow(context.instance, load))


def _greedy(context: Context) -> Placement | None:
    """TorchRec's greedy, with a tenth of the time; None where it does not cover the instance."""
    if context.reproducible and context.instance.num_tables > 200:
        return None
    return _heuristic(context, "greedy")


def _dp(context: Context) -> Placement | None:
    """The DP over memory bins, with a tenth of the time, for up to a hundred tables."""
    if context.reproducible or context.instance.num_tables > _DP_UP_TO:
        return None
    return _heuristic(context, "dp")


def _heuristic(context: Context, name: str) -> Placement | None:
    share = min(10.0, 0.1 * context.clock.remaining())
    settings = Settings(
        time_limit=None if context.reproducible else share,
        workers=1,
        seed=context.settings.seed,
        certificate=False,
        stop=context.settings.stop,
    )
    try:
        return registry.get(name).load()(context.instance, settings, Clock(settings)).placement
    except UnsupportedInstance:
        return None


def packed(context: Context, bound: int, seconds: float) -> Iterator[Start]:
    """Choices of the aggregate integer program at several slacks, packed longest first."""
    packer = Packer(context.instance, context.costs)
    rounded = None if context.over() else rounded_lp(context, bound)
    if rounded is not None:
        # a stopgap, should the integer program take long: its choices pack better
        yield pack_best(context, packer, rounded[0], rounded[1], len(SLACKS), seconds)
    end = context.clock.seconds() + 4 * seconds
    for index, slack in enumerate(SLACKS):
        late = not context.reproducible and context.clock.seconds() > end
        if context.over() or (late and index):
            return
        parts = Parts(keep=context.keep, slack=slack, typical=max(1, bound))
        limits = context.limits(seconds, context.settings.seed)
        if context.reproducible:
            choice = exact_pooled_ip(context.instance, limits, parts)
        else:
            choice = pooled_ip(context.instance, parts, limits)
        context.spend(choice.work)
        if slack == 1.0:
            context.lift(choice.bound, choice.source)
        if choice.options is None or choice.value is None:
            yield from _packed_rounded(context, packer, bound, SLACKS[max(1, index) :])
            return
        if context.objective is not None and choice.value >= context.objective:
            return
        yield pack_best(context, packer, choice.options, choice.value, index)


def _packed_rounded(
    context: Context, packer: Packer, bound: int, slacks: Sequence[float]
) -> Iterator[Start]:
    """Where the integer program found no choice in time: the LP's, rounded, at the same slacks."""
    for index, slack in enumerate(slacks, start=1):
        rounded = None if context.over() else rounded_lp(context, bound, slack)
        if rounded is not None:
            yield pack_best(context, packer, rounded[0], rounded[1], index)


def rounded_lp(context: Context, bound: int, slack: float = 1.0) -> tuple[IntArray, int] | None:
    """The option with the largest share of every table in the LP with largest-shard rows.

    The LP would take a part of an option that alone costs more than any good plan. So options
    dearer than a threshold T are left out, with T where the LP of the rest meets it (bisection).
    Where that LP exceeds T, no plan costs T or less, and the bound is lifted (at slack 1 only:
    with less than the capacities the LP is no relaxation).
    """
    own = own_cost(context.instance)
    if context.instance.objective == Objective.TOTAL:
        return _round(context, context.keep, bound, slack)
    answer = None
    low, high = bound, min(context.objective or 4 * bound, 4 * bound)
    for _ in range(_HALVINGS):
        if high - low <= max(1, low // 500) or context.over():
            break
        middle = (low + high) // 2
        found = _round(context, context.keep & (own <= middle), bound, slack)
        if found is not None and found[1] <= middle:
            answer, high = found, middle
            continue
        if slack == 1.0 and found is not None and found[1] > middle * (1 + 1e-6):
            context.lift(middle, BoundSource("highs lp", exact=False))
        low = middle
    if answer is not None or context.over():
        return answer
    return _round(context, context.keep, bound, slack)


def _round(
    context: Context, keep: BoolArray, typical: int, slack: float
) -> tuple[IntArray, int] | None:
    """Options with the largest share in one LP, and its value; None when it has no solution."""
    instance = context.instance
    if not np.logical_or.reduceat(keep, instance.table_options[:-1]).all():
        return None
    parts = Parts(keep=keep, typical=max(1, typical), slack=slack)
    model = build(instance, by_class(instance), parts)
    limits = context.limits(0.1 * context.clock.remaining())
    result = solve_highs(model.linear, whole=False, limits=limits)
    context.spend(result.work)
    if result.status != Found.OPTIMAL or result.values is None:
        return None
    share = np.full(instance.num_options, -1.0)
    share[model.columns.candidates.option] = 0.0
    np.add.at(share, model.columns.candidates.option, result.values[model.columns.x])
    ends = instance.table_options.tolist()
    options = [a + int(np.argmax(share[a:b])) for a, b in pairwise(ends)]
    return np.asarray(options, dtype=np.int64), int(result.value or 0)


def fallback(context: Context, promise: int) -> Start:
    """The option of every table that is cheapest by itself, packed: for want of a better choice."""
    cost = np.where(context.keep, own_cost(context.instance), np.iinfo(np.int64).max)
    ends = context.instance.table_options
    options = np.asarray(
        [a + int(np.argmin(cost[a:b])) for a, b in pairwise(ends.tolist())], dtype=np.int64
    )
    return pack_best(context, Packer(context.instance, context.costs), options, promise, 0)


def pack_best(
    context: Context,
    packer: Packer,
    options: Sequence[int] | IntArray,
    promise: int,
    seed: int,
    seconds: float = float("inf"),
) -> Start:
    """The least overfull of several packings of one choice of options."""
    best: Start | None = None
    until = context.clock.seconds() + (float("inf") if context.reproducible else seconds)
    everything = range(context.instance.num_tables)
    rng = np.random.default_rng([context.settings.seed, seed])
    for attempt in range(_TRIES if context.instance.num_tables <= 100 else 2):
        target = _targets(context, options, promise * (1 + 0.002 * attempt))
        placement = packer.pack(options, target, noise=rng if attempt else None)
        patience = _patience(context, len(options), until)
        placement = shift(context.instance, context.costs, placement, target, patience)
        load = load_of(context.instance, context.costs, placement, everything)
        over = overflow(context.instance, load)
        if over == 0:
            context.offer(placement, "packing")
        if context.instance.objective != Objective.TOTAL:
            over += excess(load, promise)
        if best is None or over < best.over:
            best = Start(placement, promise, over)
        if context.over() or context.clock.seconds() >= until:
            break
    assert best is not None
    return best


def _patience(context: Context, tables: int, until: float) -> Callable[[int], bool]:
    """Stop shifting after a number of steps that grows with the tables, or when time is up."""
    most = 50 + 4 * tables
    return lambda steps: steps >= most or context.over() or context.clock.seconds() >= until


def _targets(context: Context, options: Sequence[int] | IntArray, promise: float) -> list[float]:
    """Target per peak: the promise, split over phases as the chosen options' costs are."""
    count = context.costs.shape[1]
    if count == 1:
        return [promise]
    from formulations.bounds.own import per_option, shard_counts

    counts = shard_counts(context.instance)[:, None]
    totals = per_option(context.instance, context.costs * counts)[np.asarray(options)].sum(axis=0)
    share = totals / max(1, int(totals.sum()))
    return [float(promise * s) for s in share]
