"""One entry for every formulation: run it, time it, attach a certificate."""

from __future__ import annotations

from formulations import registry
from formulations.instance import Instance
from formulations.outcome import Outcome
from formulations.settings import Clock, Settings


def solve(
    instance: Instance, formulation: str = "auto", settings: Settings | None = None
) -> Outcome:
    """Solve an Instance with a formulation by name.

    Parameters
    ----------
    instance : Instance
    formulation : str
        A name in :data:`formulations.registry.FORMULATIONS`.
    settings : Settings, optional

    Returns
    -------
    Outcome
        Its placement, if any, has passed :func:`formulations.check.check`.

    Raises
    ------
    InstanceError
        For an unknown formulation, or one that does not cover this shape of instance.
    InternalError
        When an exact model returns an answer that the check rejects.
    """
    settings = settings or Settings()
    clock = Clock(settings)
    outcome = registry.get(formulation).load()(instance, settings, clock)
    if settings.certificate and outcome.certificate is None:
        from formulations.certify import certify

        outcome = certify(instance, outcome)
    return outcome.with_(
        formulation=formulation,
        seconds=clock.seconds(),
        trace=tuple(clock.trace),
        settings=settings.describe(),
    )
