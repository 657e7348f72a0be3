"""One entry for every formulation: run it, time it, attach a certificate."""

from __future__ import annotations

from formulations import registry
from formulations.instance import Instance
from formulations.outcome import Outcome
from formulations.settings import Clock, Settings

#: Share of the time limit kept for the certificate, the most seconds of it, and the least that it
#: is given however little is left.
KEEP, MOST_SECONDS, LEAST_SECONDS = 0.05, 2.0, 0.3


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
        For an unknown formulation or option, or an instance of a shape it does not cover.
    InternalError
        When an exact model returns an answer that the check rejects.
    """
    settings = settings or Settings()
    chosen = registry.get(formulation)
    chosen.check(settings.options)
    clock = Clock(settings)
    certify_for = _kept_for_certificate(settings)
    with clock.holding_back(certify_for):
        outcome = chosen.load()(instance, settings, clock)
    if settings.certificate and outcome.certificate is None and not clock.interrupted():
        from formulations.certify import certify

        timed = settings.time_limit is not None and settings.work_limit is None
        seconds = max(LEAST_SECONDS, clock.remaining()) if timed else None
        outcome = certify(instance, outcome, seconds)
    return outcome.with_(
        formulation=formulation,
        seconds=clock.seconds(),
        trace=tuple(clock.trace),
        settings=settings.describe(),
    )


def _kept_for_certificate(settings: Settings) -> float:
    if not settings.certificate or settings.work_limit is not None:
        return 0.0
    return min(MOST_SECONDS, KEEP * (settings.time_limit or 0.0))
