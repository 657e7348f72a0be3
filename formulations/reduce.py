"""Lower bounds on the plans that use an option: reduced costs at a certificate's multipliers.

At multipliers λ of the capacities (and weights of the ranks), Σ_t min_o v_o − λ·capacity is a
bound on every plan, where v_o is the price of option o. A plan that uses option o of table t costs
at least that bound plus v_o minus the least price of t. So once a plan of value U is known, every
option whose bound reaches U can be removed: no better plan uses it (reduced-cost fixing; Fisher
1981, "The Lagrangian relaxation method for solving integer programming problems", Management
Science 27).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from formulations.errors import InstanceError
from formulations.instance import Instance, IntArray
from formulations.proof.build import build_rows
from formulations.proof.prove import symmetric_lp
from formulations.proof.rows import Rows
from formulations.proof.tree import bare, forced_sums
from formulations.proof.weights import Weights, choice_prices, option_prices, vector_of
from formulations.result.certificate import Certificate

#: Stands for "no plan of interest uses it".
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class OptionBounds:
    """Lower bounds, overall and option by option.

    Attributes
    ----------
    bound : int
        No plan costs less; :data:`NEVER` when some table has no option.
    of_option : int64 array [options]
        No plan that uses the option costs less; :data:`NEVER` for options removed before.
    certificate : Certificate
        The certificate whose multipliers give all these bounds.
    """

    bound: int
    of_option: IntArray
    certificate: Certificate

    def below(self, value: int) -> NDArray[np.bool_]:
        """Options that some plan cheaper than ``value`` might use, bool array [options]."""
        return self.of_option < value

    def cheapest(self, instance: Instance, extra: int) -> NDArray[np.bool_]:
        """At least one option per table and about ``extra`` more, those with the lowest bounds."""
        if not instance.num_options:
            return np.zeros(0, dtype=bool)
        wanted = min(instance.num_tables + extra, instance.num_options) - 1
        limit = int(np.partition(self.of_option, wanted)[wanted])
        return self.of_option <= min(limit, NEVER - 1)


def option_bounds(instance: Instance, kept: NDArray[np.bool_]) -> OptionBounds | None:
    """Bounds of every option from the duals of the LP over pooled places.

    Parameters
    ----------
    instance : Instance
    kept : bool array [options]
        Options that presolve left; each table must have one.

    Returns
    -------
    OptionBounds or None
        None when that LP has no solution (the instance is then infeasible, unless the solver
        gave up).
    """
    relaxed = symmetric_lp(instance, targets=False)
    return None if relaxed is None else bounds_at(instance, kept, relaxed.certificate)


def suits(instance: Instance, certificate: Certificate) -> bool:
    """Whether a certificate's multipliers at its root are of rows that the instance has."""
    try:
        return any(True for _ in _root_weights(build_rows(instance), certificate))
    except InstanceError:
        return False


def bounds_at(
    instance: Instance, kept: NDArray[np.bool_], certificate: Certificate
) -> OptionBounds | None:
    """Exact bounds of every option at the multipliers of a certificate's root.

    The instance may differ from the certificate's in its capacities: multipliers are valid for any.

    Parameters
    ----------
    instance : Instance
    kept : bool array [options]
        Options that some plan of interest may use.
    certificate : Certificate
        Of kind ``bound``.

    Returns
    -------
    OptionBounds or None
        None when no vector of its root prices anything, as where all its cases are impossible.

    Raises
    ------
    InstanceError
        When the certificate is one of infeasibility or does not fit the instance.
    """
    return _bounds(build_rows(instance), kept, certificate)


def _bounds(rows: Rows, kept: NDArray[np.bool_], certificate: Certificate) -> OptionBounds | None:
    keep = kept & rows.possible
    bound, of_option = None, np.full(len(kept), NEVER, dtype=np.int64)
    of_option[keep] = -NEVER
    for weights in _root_weights(rows, certificate):
        forced, total = forced_sums(rows, keep, option_prices(rows, choice_prices(rows, weights)))
        if total == float("inf"):
            return OptionBounds(NEVER, np.full_like(of_option, NEVER), certificate)
        these = -(
            (weights.room - forced[keep]) // weights.level
        )  # rounded up, in Python's integers
        these = np.minimum(np.maximum(these, -NEVER), NEVER - 1).astype(np.int64)
        of_option[keep] = np.maximum(of_option[keep], these)
        value = _ceil(int(total) - weights.room, weights.level)
        bound = value if bound is None else max(bound, value)
    return None if bound is None else OptionBounds(bound, of_option, certificate)


def relaxed_bound(instance: Instance, certificate: Certificate) -> int | None:
    """The bound that a certificate's multipliers prove for an instance; None if they prove nothing.

    It is the better of two. Without the options that alone cost the certificate's target, the bound
    is tighter but cannot exceed the target; with them, it can.
    """
    found, rows = [], build_rows(instance)
    try:
        vectors = [(w, choice_prices(rows, w)) for w in _root_weights(rows, certificate)]
    except InstanceError:
        return None
    for weights, choices in vectors:
        prices = option_prices(rows, choices)
        for limit in (None, certificate.target):
            _, total = forced_sums(rows, _below(rows, limit), prices)
            known = [] if limit is None else [limit]
            if total != float("inf"):
                known.append(_ceil(int(total) - weights.room, weights.level))
            found += [min(known)] if known else []
    return max(found, default=None)


def forced_bounds(instance: Instance, certificate: Certificate) -> list[int | None]:
    """For every option, a bound on all plans that use it; None: no plan does.

    Raises
    ------
    InstanceError
        As in :func:`bounds_at`.
    """
    rows = build_rows(instance)
    limits = [None] if certificate.target is None else [None, certificate.target]
    found = [_bounds(rows, _below(rows, limit), certificate) for limit in limits]
    if found[0] is None:
        raise InstanceError("certificate: it has no multipliers of costs at its root")
    free = found[0].of_option
    cut = np.full_like(free, NEVER)
    if found[-1] is not None and certificate.target is not None:
        cut = np.minimum(found[-1].of_option, certificate.target)
    return [
        None if f == NEVER else max(f, c) for f, c in zip(free.tolist(), cut.tolist(), strict=True)
    ]


def slope(instance: Instance, certificate: Certificate, names: Sequence[str]) -> float:
    """−Σ λ over all places of some resources: the change of the bound per byte at each place.

    The multipliers are those of the linear program over the whole instance.

    References
    ----------
    Geoffrion, "Lagrangean relaxation for integer programming", Mathematical Programming Study 2
    (1974): the dual function is linear in the right-hand side at fixed multipliers.
    """
    rows = build_rows(instance)
    vector = certificate.vectors[0]
    level = vector_of(rows, vector).level
    total = 0
    places = {resource.name: len(resource.capacity) for resource in instance.resources}
    for row in vector:
        if row["row"] == "capacity" and row["of"] in names:
            total += row["times"] * (1 if "at" in row else places[row["of"]])
    return -float(Fraction(total, level))


def _below(rows: Rows, target: int | None) -> NDArray[np.bool_]:
    """Options that a plan below a target may use, by the bare rule."""
    return bare(rows, rows.possible, None if target is None else target - 1)


def _root_weights(rows: Rows, certificate: Certificate) -> Iterator[Weights]:
    """The first vector, and those used at the root that also pool like ranks."""
    if certificate.kind != "bound" or not certificate.vectors:
        raise InstanceError("certificate: a proof of infeasibility carries no bound")
    for index in dict.fromkeys([0, *certificate.nodes[0].get("use", [])]):
        try:
            weights = vector_of(rows, certificate.vectors[index])
        except InstanceError:
            if index == 0:
                raise
            continue
        if weights.level:
            yield weights


def _ceil(value: int, divisor: int) -> int:
    return max(-NEVER, min(NEVER - 1, -(-value // divisor)))


def places_are_fixed(instance: Instance, kept: NDArray[np.bool_]) -> bool:
    """Whether every option left fixes the places of all its shards, so that only options are
    chosen."""
    return bool(instance.settled[kept[instance.option_of]].all())
