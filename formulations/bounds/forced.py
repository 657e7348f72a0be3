"""What a certificate proves about every single option: no plan that uses it costs less."""

from __future__ import annotations

from formulations.bounds.components import Component, components
from formulations.bounds.lagrangian import priced_options
from formulations.bounds.own import own_cost, usable
from formulations.certificate import Certificate, capacity_value, validate_certificate
from formulations.errors import InstanceError
from formulations.instance import Instance, Objective


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
    capacity = capacity_value(instance, certificate)
    found: list[int | None] = [certificate.cutoff if fit else None for fit in fits]
    parts = [Component(instance, values, keep, *part) for part in components(instance, keep)]
    cheapest = [part.least for part in parts]
    known = [least for least in cheapest if least is not None]
    if len(known) < len(parts):
        return _own(instance, found)
    total = sum(known) - capacity
    for part, least in zip(parts, known, strict=True):
        for option, forced in part.forced():
            if forced is not None:
                dual = -(-(total - least + forced) // certificate.denominator)
                cutoff = certificate.cutoff
                found[option] = dual if cutoff is None else min(dual, cutoff)
    return _own(instance, found)


def _own(instance: Instance, found: list[int | None]) -> list[int | None]:
    """Bounds raised to what each option's own shards cost."""
    if instance.objective == Objective.TOTAL:
        return found
    own = own_cost(instance).tolist()
    return [None if b is None else max(b, o) for b, o in zip(found, own, strict=True)]
