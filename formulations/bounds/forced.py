"""What a certificate proves about every single option: no plan that uses it costs less."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from formulations.bounds.components import MAX_WORK, components
from formulations.bounds.lagrangian import priced_options
from formulations.bounds.own import own_cost, usable
from formulations.certificate import Certificate, validate_certificate
from formulations.errors import InstanceError
from formulations.instance import Instance, Objective

#: Stands for "no such choice" in sums of Python integers.
_NEVER = 2**200


def forced_bounds(instance: Instance, certificate: Certificate) -> list[int | None]:
    """For every option, a bound on all plans that use it.

    The Lagrangian bound with the table's choice fixed: its fusion component is priced again with
    that option, everything else stays at its cheapest. What :func:`formulations.certificate
    .bound_of` says of the instance with the option pinned, for all options at once.

    Parameters
    ----------
    instance : Instance
    certificate : Certificate
        Of kind ``bound``.

    Returns
    -------
    list [options] of int or None
        None for an option that fits nowhere or is not allowed: no plan uses it.

    Raises
    ------
    InstanceError
        When the certificate does not belong to the instance or is one of infeasibility.
    """
    validate_certificate(instance, certificate)
    if certificate.kind != "bound":
        raise InstanceError("certificate: a proof of infeasibility carries no bound")
    fits = usable(instance)
    keep = fits.copy()
    if certificate.cutoff is not None:
        keep &= own_cost(instance) < certificate.cutoff
    values = priced_options(instance, certificate)
    capacity = _capacity_value(instance, certificate)
    found: list[int | None] = [certificate.cutoff if fit else None for fit in fits]
    parts = [_Component(instance, values, keep, *part) for part in components(instance, keep)]
    total = sum(part.least for part in parts)
    if total >= _NEVER:
        return _own(instance, found)
    for part in parts:
        for option, least in part.forced():
            dual = -(-(total - part.least + least - capacity) // certificate.denominator)
            if least >= _NEVER:
                found[option] = certificate.cutoff
            else:
                found[option] = (
                    dual if certificate.cutoff is None else min(dual, certificate.cutoff)
                )
    return _own(instance, found)


def _own(instance: Instance, found: list[int | None]) -> list[int | None]:
    """Bounds raised to what each option's own shards cost."""
    if instance.objective == Objective.TOTAL:
        return found
    own = own_cost(instance).tolist()
    return [None if b is None else max(b, o) for b, o in zip(found, own, strict=True)]


class _Component:
    """Tables that share levels: their cheapest values at every tuple of levels.

    Attributes
    ----------
    least : int
        The cheapest of all, ``_NEVER`` or more when some table has no option.
    """

    def __init__(
        self, instance: Instance, values: np.ndarray, keep: np.ndarray,
        tables: list[int], groups: list[int],
    ) -> None:  # fmt: skip
        levels = {g: _levels(instance, keep, g) for g in groups}
        self._held = _held(levels, len(tables))
        self._tuples = list(product(*(levels[g] for g in self._held)))
        self._options = {
            t: [o for o in instance.options_of(t) if keep[o]] for t in tables
        }  # fmt: skip
        self._instance, self._values = instance, values
        self._rows: dict[int, np.ndarray[Any, Any]] = {t: self._row(t) for t in tables}
        self._sum = sum(self._rows.values(), np.zeros(len(self._tuples), dtype=object))
        self.least = int(min(self._sum, default=0))

    def forced(self) -> list[tuple[int, int]]:
        """Every option kept, with the component's least when its table must use it."""
        return [
            (option, int(min((rest[at] for at in self._at(option)), default=_NEVER))
             + int(self._values[option]))
            for table, options in self._options.items()
            for rest in [self._sum - self._rows[table]]
            for option in options
        ]  # fmt: skip

    def _row(self, table: int) -> np.ndarray[Any, Any]:
        row = np.full(len(self._tuples), _NEVER, dtype=object)
        for option in self._options[table]:
            value = int(self._values[option])
            for at in self._at(option):
                row[at] = min(row[at], value)
        return row

    def _at(self, option: int) -> list[int]:
        """Positions of the level tuples an option allows."""
        group = int(self._instance.option_group[option])
        if group not in self._held:
            return list(range(len(self._tuples)))
        place, level = self._held.index(group), int(self._instance.option_level[option])
        return [i for i, levels in enumerate(self._tuples) if levels[place] == level]


def _levels(instance: Instance, keep: np.ndarray, group: int) -> list[int]:
    found: list[int] = np.unique(
        instance.option_level[keep & (instance.option_group == group)]
    ).tolist()
    return found


def _held(levels: dict[int, list[int]], tables: int) -> list[int]:
    """Groups whose levels are enumerated; the others are relaxed (see ``components``)."""
    held: list[int] = []
    work = tables
    for group in sorted(levels, key=lambda g: len(levels[g])):
        work *= len(levels[group])
        if work > MAX_WORK:
            break
        held.append(group)
    return held


def _capacity_value(instance: Instance, certificate: Certificate) -> int:
    return sum(
        price * int(capacity)
        for resource in instance.resources
        for price, capacity in zip(
            certificate.prices[resource.name], resource.capacity, strict=True
        )
    )
