"""What any plan must cost that uses an option: reduced costs of the Lagrangian, in integers.

At multipliers λ of the capacities (and weights of the ranks), Σ_t min_o v_o − λ·capacity is a
bound on every plan, with v_o the priced value of option o. A plan that uses o of table t costs
at least that bound plus v_o − min of t, so once a plan of value U is known, every option whose
bound reaches U can go: no better plan uses it (reduced-cost fixing; Fisher 1981, "The Lagrangian
relaxation method for solving integer programming problems", Management Science 27).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formulations.bounds.lagrangian import priced_options
from formulations.certificate import Certificate
from formulations.instance import Instance, IntArray, Where

#: Stands for "no plan of interest uses it".
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class OptionBounds:
    """Lower bounds, overall and option by option.

    Attributes
    ----------
    bound : int
        No plan costs less.
    of_option : int64 array [options]
        No plan that uses the option costs less; :data:`NEVER` for options removed before.
    certificate : Certificate
        The multipliers all of them come from.
    """

    bound: int
    of_option: IntArray
    certificate: Certificate

    def below(self, value: int) -> NDArray[np.bool_]:
        """Options that some plan cheaper than ``value`` might use, bool array [options]."""
        return self.of_option < value

    def cheapest(self, instance: Instance, extra: int) -> NDArray[np.bool_]:
        """At least one option a table and about ``extra`` more, the least bounds first."""
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
    from formulations.certify import symmetric_lp

    relaxed = symmetric_lp(instance)
    if relaxed is None:
        return None
    return bounds_at(instance, kept, relaxed.certificate)


def bounds_at(
    instance: Instance, kept: NDArray[np.bool_], certificate: Certificate
) -> OptionBounds:
    """Bounds of every option at given multipliers, exact.

    Limits on fusion and moves are relaxed: that lowers bounds and never raises them.
    """
    values = priced_options(instance, certificate)
    ceiling = max(values.max(initial=0), 0) + 1
    least = np.minimum.reduceat(np.where(kept, values, ceiling), instance.table_options[:-1])
    paid = sum(
        price * int(room)
        for resource in instance.resources
        for price, room in zip(certificate.prices[resource.name], resource.capacity, strict=True)
    )
    total = int(least.sum()) - paid
    slack = total + values - least[instance.table_of]
    of_option = np.full(instance.num_options, NEVER, dtype=np.int64)
    of_option[kept] = [_ceil(int(s), certificate.denominator) for s in slack[kept]]
    return OptionBounds(_ceil(total, certificate.denominator), of_option, certificate)


def _ceil(value: int, divisor: int) -> int:
    return -(-value // divisor)


def places_are_fixed(instance: Instance, kept: NDArray[np.bool_]) -> bool:
    """Whether every option left says where all its shards sit: only options are to be chosen."""
    fixed = np.isin(instance.block_where, (Where.EVERY_RANK, Where.LIST, Where.CLUSTER))
    return bool(fixed[kept[instance.option_of]].all())
