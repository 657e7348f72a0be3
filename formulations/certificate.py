"""The Lagrangian certificate: multipliers from which anyone re-derives a bound in integers.

Nothing here imports a solver: :func:`bound_of` needs the Instance, the certificate and integer
arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from formulations.errors import InstanceError
from formulations.instance import Instance, Objective

#: Format of certificates; a branch tree of certificates will be version 2 (key ``children``).
VERSION = 1


@dataclass(frozen=True)
class Certificate:
    """Prices at which every plan costs at least the certified bound.

    Attributes
    ----------
    kind : str
        ``bound`` or ``infeasible``.
    denominator : int
        D: all multipliers are integers over it.
    prices : dict of resource name to tuple of int [places]
        λ·D ≥ 0 for every place of every resource.
    weights : tuple of tuple of int
        w·D: one row [ranks] for ``busiest_rank`` (Σ = D); one row a phase for ``step_time``
        (each Σ = D); empty for ``total`` and for ``infeasible``.
    cutoff : int or None
        Options whose own cost alone reaches it were dropped first; the bound is then never above
        it. (A plan that uses such an option costs at least the cutoff.)
    """

    kind: str
    denominator: int
    prices: dict[str, tuple[int, ...]]
    weights: tuple[tuple[int, ...], ...] = ()
    cutoff: int | None = None


def bound_of(instance: Instance, certificate: Certificate) -> int:
    """Re-derive the bound a certificate proves: no plan of the instance costs less.

    The bound is ``min(cutoff, ceil((Σ_components min − Σ λ·capacity) / D))``: the Lagrangian dual
    function of the placement problem at the certificate's multipliers (Geoffrion 1974), with the
    minimum taken over the level tuples of each fusion component.

    Parameters
    ----------
    instance : Instance
    certificate : Certificate
        Of kind ``bound``.

    Returns
    -------
    int

    Raises
    ------
    InstanceError
        When the certificate does not belong to this instance (wrong places, negative prices,
        weights that do not add up to D), or is an infeasibility certificate.
    """
    from formulations.bounds.lagrangian import least_priced

    validate_certificate(instance, certificate)
    if certificate.kind != "bound":
        raise InstanceError("certificate: a proof of infeasibility carries no bound")
    least = least_priced(instance, certificate)
    if least is None:
        if certificate.cutoff is None:
            raise InstanceError("certificate: some table has no option at all, so no bound exists")
        return certificate.cutoff
    dual = least - capacity_value(instance, certificate)
    bound = -(-dual // certificate.denominator)
    return bound if certificate.cutoff is None else min(bound, certificate.cutoff)


def proves_infeasible(instance: Instance, certificate: Certificate) -> bool:
    """Whether a certificate of kind ``infeasible`` proves that no plan exists.

    It does when the cheapest way to place every table at prices λ costs more than all capacity
    is worth: Σ min λ·use > λ·capacity (a Farkas argument), or when some table has no option that
    fits anywhere.

    Raises
    ------
    InstanceError
        As :func:`bound_of`.
    """
    from formulations.bounds.lagrangian import least_priced

    validate_certificate(instance, certificate)
    if certificate.kind != "infeasible":
        return False
    least = least_priced(instance, certificate)
    return least is None or least > capacity_value(instance, certificate)


def capacity_value(instance: Instance, certificate: Certificate) -> int:
    """What all capacity is worth at the certificate's prices: λ·capacity, times D."""
    return sum(
        price * int(capacity)
        for resource in instance.resources
        for price, capacity in zip(
            certificate.prices[resource.name], resource.capacity, strict=True
        )
    )


def validate_certificate(instance: Instance, certificate: Certificate) -> None:
    """Check that the multipliers fit the instance and may be used at all.

    Raises
    ------
    InstanceError
        One sentence: what was found and what is allowed.
    """
    if certificate.kind not in ("bound", "infeasible"):
        raise InstanceError(
            f"certificate: kind is {certificate.kind!r}, allowed: 'bound', 'infeasible'"
        )
    if certificate.denominator < 1:
        raise InstanceError("certificate: the denominator must be 1 or more")
    _validate_prices(instance, certificate)
    _validate_weights(instance, certificate)


def _validate_prices(instance: Instance, certificate: Certificate) -> None:
    names = {r.name for r in instance.resources}
    if set(certificate.prices) != names:
        raise InstanceError(
            f"certificate: prices for {sorted(certificate.prices)}, "
            f"the instance has the resources {sorted(names)}"
        )
    for resource in instance.resources:
        prices = certificate.prices[resource.name]
        if len(prices) != len(resource.capacity):
            raise InstanceError(
                f"certificate: {len(prices)} prices of {resource.name!r} for "
                f"{len(resource.capacity)} places"
            )
        if min(prices, default=0) < 0:
            raise InstanceError(f"certificate: a price of {resource.name!r} is negative")


def _validate_weights(instance: Instance, certificate: Certificate) -> None:
    rows = 0
    if certificate.kind == "bound":
        rows = {
            Objective.TOTAL: 0,
            Objective.BUSIEST_RANK: 1,
            Objective.STEP_TIME: len(instance.phases),
        }[instance.objective]
    if len(certificate.weights) != rows:
        raise InstanceError(
            f"certificate: {len(certificate.weights)} rows of weights, "
            f"{rows} belong to {instance.objective.value!r}"
        )
    for row in certificate.weights:
        if len(row) != instance.num_ranks or min(row) < 0 or sum(row) != certificate.denominator:
            raise InstanceError(
                "certificate: each row of weights needs one weight ≥ 0 a rank, adding up to the "
                "denominator"
            )


def certificate_to_dict(certificate: Certificate) -> dict[str, object]:
    """A certificate as JSON values (``children`` is reserved for branch trees)."""
    return {
        "version": VERSION,
        "kind": certificate.kind,
        "denominator": certificate.denominator,
        "prices": {name: list(row) for name, row in certificate.prices.items()},
        "weights": [list(row) for row in certificate.weights],
        "cutoff": certificate.cutoff,
        "children": [],
    }


def certificate_from_dict(data: object, what: str = "certificate") -> Certificate:
    """Read a certificate back; :func:`validate_certificate` then ties it to an instance.

    ``what`` names the file in error sentences.

    Raises
    ------
    InstanceError
        For an unknown version, missing keys, or anything that is not an integer.
    """
    if not isinstance(data, Mapping):
        raise InstanceError(f"{what}: a certificate must be an object, found {data!r}")
    if data.get("version") != VERSION or data.get("children"):
        raise InstanceError(
            f"{what}: a certificate of version {data.get('version')!r} with "
            f"{len(_list(data.get('children', []), what))} children; allowed: version {VERSION} "
            "without children"
        )
    prices = data.get("prices")
    if not isinstance(prices, Mapping):
        raise InstanceError(f"{what}: 'prices' must map resource names to lists of integers")
    cutoff = data.get("cutoff")
    return Certificate(
        kind=str(data.get("kind")),
        denominator=_integer(data.get("denominator"), f"{what}: denominator"),
        prices={str(k): _row(row, f"{what}: prices of {k!r}") for k, row in prices.items()},
        weights=tuple(
            _row(row, f"{what}: weights")
            for row in _list(data.get("weights", []), f"{what}: weights")
        ),
        cutoff=None if cutoff is None else _integer(cutoff, f"{what}: cutoff"),
    )


def _integer(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InstanceError(f"{what} must be an integer, found {value!r}")
    return value


def _list(value: object, what: str) -> list[object]:
    if not isinstance(value, (list, tuple)):
        raise InstanceError(f"{what} must be a list, found {value!r}")
    return list(value)


def _row(value: object, what: str) -> tuple[int, ...]:
    return tuple(_integer(v, what) for v in _list(value, what))
