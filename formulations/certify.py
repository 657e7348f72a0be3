"""Find multipliers for a certificate: the duals of the aggregate LP, rounded to integers.

How good they are decides how much is certified; that they are valid is decided by
:func:`formulations.certificate.bound_of` alone, in integers.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import numpy as np

from formulations.aggregate.cells import Cells, by_class
from formulations.aggregate.highs import solve_highs
from formulations.aggregate.linear import LinearModel
from formulations.aggregate.model import Aggregate, AggregateSettings, build
from formulations.bounds.own import own_cost, usable
from formulations.certificate import Certificate, bound_of, proves_infeasible
from formulations.instance import Instance, Objective, Scope
from formulations.outcome import BoundSource, Outcome, Status, StoppedBy

_MAX_BITS = 40
_MAX_PRICE = 2**52
_FAR = 8


def certify(instance: Instance, outcome: Outcome, seconds: float | None = None) -> Outcome:
    """Attach the best certificate at hand to an Outcome.

    A feasible outcome gets a bound (which also becomes ``bound`` when that is missing or weaker),
    an infeasible one a proof of infeasibility where the LP has one.

    Parameters
    ----------
    instance : Instance
    outcome : Outcome
    seconds : float, optional
        For all of it.

    Returns
    -------
    Outcome
        The same with ``certificate`` and ``certified_bound``; unchanged where none was found.
    """
    if outcome.status == Status.INFEASIBLE:
        proof = infeasibility_certificate(instance, seconds)
        return outcome if proof is None else outcome.with_(certificate=proof)
    certificate = bound_certificate(instance, outcome.objective, seconds)
    if certificate is None:
        return outcome
    return with_certificate(instance, outcome, certificate)


def with_certificate(instance: Instance, outcome: Outcome, certificate: Certificate) -> Outcome:
    """Attach a given bound certificate; see :func:`certify`."""
    bound = bound_of(instance, certificate)
    outcome = outcome.with_(certificate=certificate, certified_bound=bound)
    if outcome.bound is None or bound > outcome.bound:
        outcome = outcome.with_(bound=bound, bound_source=BoundSource("lagrangian", exact=True))
    if outcome.objective is not None and outcome.objective == bound:
        outcome = outcome.with_(status=Status.OPTIMAL, stopped_by=StoppedBy.PROOF)
    return outcome


@dataclass(frozen=True, eq=False)
class SymmetricLP:
    """Solution of the LP over pooled places.

    Attributes
    ----------
    certificate : Certificate
    bound : int
        What the certificate proves.
    value : float
        Objective of the LP, floating point.
    shares : dict of option to float
        Share of each option with a positive share.
    """

    certificate: Certificate
    bound: int
    value: float
    shares: dict[int, float]


def symmetric_lp(
    instance: Instance,
    cutoff: int | None = None,
    time_limit: float | None = None,
    stop: threading.Event | None = None,
) -> SymmetricLP | None:
    """Solve the LP over pooled places and turn its duals into a certificate.

    Places that are interchangeable make this LP as strong as the LP relaxation of the whole
    placement model: any solution may be averaged over the symmetries (docs/bounds.md).

    Parameters
    ----------
    instance : Instance
    cutoff : int, optional
        Objective of a known plan: options that alone cost as much are dropped.
    time_limit : float, optional
        Seconds.
    stop : threading.Event, optional
        Ends it when set.

    Returns
    -------
    SymmetricLP or None
        None when the LP is infeasible or was not solved in time.
    """
    keep = usable(instance)
    if cutoff is not None:
        keep &= own_cost(instance) < cutoff
    aggregate = build(instance, AggregateSettings(keep=keep, largest=False, typical=cutoff))
    result = solve_highs(aggregate.model, whole=False, time_limit=time_limit, stop=stop)
    if result.status != "optimal" or result.duals is None or result.values is None:
        return None
    certificate = _from_duals(instance, aggregate, result.duals, cutoff)
    return SymmetricLP(
        certificate=certificate,
        bound=bound_of(instance, certificate),
        value=float(result.objective or 0.0),
        shares=aggregate.chosen(result.values),
    )


def best_symmetric_lp(
    instance: Instance,
    upper: int | None,
    steps: int = 10,
    time_limit: float | None = None,
    stop: threading.Event | None = None,
) -> SymmetricLP | None:
    """The symmetric LP at the cutoff that certifies most.

    A plan below a cutoff T uses only options that alone cost less than T, so min(T, LP over those)
    is a bound for every T: small T drop more options, large T claim more. Bisection finds the T
    where both meet.

    Parameters
    ----------
    upper : int or None
        Objective of a known plan; without one cutoffs up to a multiple of the bound are tried.
        (Under ``total`` there is no cutoff.)
    steps : int
        LPs to solve.
    time_limit : float, optional
        Seconds for all of them.
    stop : threading.Event, optional
        Ends it when set, with the best so far.
    """
    end = None if time_limit is None else time.monotonic() + time_limit

    def left() -> float | None:
        return None if end is None else end - time.monotonic()

    best = symmetric_lp(instance, upper, time_limit, stop)
    if best is None or instance.objective == Objective.TOTAL:
        return best
    low, high = best.bound, _FAR * best.bound if upper is None else upper
    for _ in range(steps):
        late = (end is not None and time.monotonic() >= end) or (stop is not None and stop.is_set())
        if late or high - low <= max(1, high // 10**6):
            break
        middle = (low + high) // 2
        solved = symmetric_lp(instance, middle, left(), stop)
        if solved is not None and solved.bound > best.bound:
            best = solved
        if solved is None or solved.bound >= middle:
            low = middle
        else:
            high = middle
    return best


def bound_certificate(
    instance: Instance, cutoff: int | None, seconds: float | None = None
) -> Certificate | None:
    """The certificate of the symmetric LP, or the trivial one when nothing may cost less."""
    solved = best_symmetric_lp(instance, cutoff, time_limit=seconds)
    if solved is not None:
        return solved.certificate
    if cutoff is None or instance.objective == Objective.TOTAL:
        return None
    return _certificate(instance, by_class(instance), {}, None, cutoff)


def infeasibility_certificate(
    instance: Instance, seconds: float | None = None, stop: threading.Event | None = None
) -> Certificate | None:
    """Prices that prove no plan exists, when the LP over pooled places is infeasible.

    The LP that pays for every byte beyond capacity has them as its duals.
    """
    keep = usable(instance)
    if instance.num_tables and not np.logical_or.reduceat(keep, instance.table_options[:-1]).all():
        return _proof(instance, _no_options(instance))
    aggregate = build(instance, AggregateSettings(keep=keep, largest=False))
    result = solve_highs(_elastic(aggregate), whole=False, time_limit=seconds, stop=stop)
    if result.status != "optimal" or result.duals is None:
        return _proof(instance, _no_options(instance))
    prices = _row_prices(aggregate, np.append(-result.duals, 0.0))
    return _proof(
        instance, _certificate(instance, aggregate.cells, prices, None, None, "infeasible")
    )


def _proof(instance: Instance, certificate: Certificate) -> Certificate | None:
    return certificate if proves_infeasible(instance, certificate) else None


def _no_options(instance: Instance) -> Certificate:
    return _certificate(instance, by_class(instance), {}, None, None, "infeasible")


def _elastic(aggregate: Aggregate) -> LinearModel:
    """The aggregate rows with a paid overflow for every resource row."""
    source, rows = aggregate.model, aggregate.model.rows()
    model = LinearModel()
    model.lower, model.upper = list(source.lower), list(source.upper)
    model.whole, model.unit = list(source.whole), list(source.unit)
    paid = {int(r) for part in aggregate.resource_rows for r in part if r >= 0}
    for index in range(source.num_rows):
        span = slice(rows.start[index], rows.start[index + 1])
        columns, sizes = rows.column[span], rows.coefficient[span]
        if index in paid:
            unit = max(1, int(rows.high[index]))
            over = model.columns(1, upper=2**62, whole=False, unit=unit)
            model.objective[over] = max(1, 2**52 // unit)
            columns, sizes = np.append(columns, over), np.append(sizes, -1)
        model.row(columns, sizes, int(rows.low[index]), int(rows.high[index]))
    return model


def _from_duals(
    instance: Instance, aggregate: Aggregate, duals: np.ndarray, cutoff: int | None
) -> Certificate:
    multipliers = np.append(np.maximum(0.0, -duals), 0.0)  # row -1: none
    weights = None
    if aggregate.peaks:
        weights = multipliers[aggregate.peak_rows]
    if instance.objective == Objective.TOTAL:
        cutoff = None
    return _certificate(
        instance, aggregate.cells, _row_prices(aggregate, multipliers), weights, cutoff
    )


def _row_prices(aggregate: Aggregate, multipliers: np.ndarray) -> dict[int, np.ndarray]:
    """Price per part (cell, group or cluster) of every resource, by index of the resource."""
    return {
        index: np.maximum(0.0, multipliers[rows])
        for index, rows in enumerate(aggregate.resource_rows)
    }


def _certificate(
    instance: Instance, cells: Cells, prices: dict[int, np.ndarray], weights: np.ndarray | None,
    cutoff: int | None, kind: str = "bound",
) -> Certificate:  # fmt: skip
    top = max((float(p.max(initial=0.0)) for p in prices.values()), default=0.0)
    bits = _MAX_BITS
    while bits > 0 and top * 2.0**bits >= _MAX_PRICE:
        bits -= 1
    if kind == "infeasible" and top > 0:
        bits = 0
        while top * 2.0**bits < 2.0**36:
            bits += 1
    scale = 2**bits
    denominator = scale * instance.num_ranks
    rows: tuple[tuple[int, ...], ...] = ()
    if kind == "bound" and instance.objective != Objective.TOTAL:
        count = 1 if instance.objective == Objective.BUSIEST_RANK else len(instance.phases)
        shares = np.zeros((count, cells.count)) if weights is None else weights
        rows = tuple(_weights(cells, share, denominator) for share in shares)
    elif instance.objective == Objective.TOTAL or kind == "infeasible":
        denominator = scale
    return Certificate(
        kind=kind,
        denominator=denominator,
        prices={
            r.name: _place_prices(instance, cells, index, prices.get(index), denominator)
            for index, r in enumerate(instance.resources)
        },
        weights=rows,
        cutoff=cutoff,
    )


def _place_prices(
    instance: Instance, cells: Cells, index: int, price: np.ndarray | None, scale: int
) -> tuple[int, ...]:
    resource = instance.resources[index]
    if price is None:
        return (0,) * len(resource.capacity)
    whole = [round(float(p) * scale) for p in price]
    part = {Scope.RANK: cells.cell_of, Scope.MACHINE: cells.group_of}.get(resource.scope)
    return tuple(whole) if part is None else tuple(whole[int(p)] for p in part)


def _weights(cells: Cells, share: np.ndarray, denominator: int) -> tuple[int, ...]:
    """Weights of one row: proportional to the duals, adding up to the denominator exactly."""
    whole = [int(float(s) * denominator) for s in share]
    total = sum(w * int(n) for w, n in zip(whole, cells.cell_size, strict=True))
    if total > denominator or total == 0:
        factor = 0.0 if total == 0 else denominator / (total * (1 + 1e-12))
        whole = [int(w * factor) for w in whole]
        total = sum(w * int(n) for w, n in zip(whole, cells.cell_size, strict=True))
    if total == 0:
        whole, total = [denominator // len(cells.cell_of)] * cells.count, 0
        total = whole[0] * len(cells.cell_of)
    largest = int(np.argmax(cells.cell_size))
    each, rest = divmod(denominator - total, int(cells.cell_size[largest]))
    whole[largest] += each
    row = [whole[int(c)] for c in cells.cell_of]
    row[int(np.flatnonzero(cells.cell_of == largest)[0])] += rest
    return tuple(row)
