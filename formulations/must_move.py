"""The least that must move, certified, before a solve that starts from an earlier plan."""

from __future__ import annotations

from dataclasses import replace

from formulations import registry
from formulations.clock import Clock
from formulations.evidence.certify import certify
from formulations.instance import Instance
from formulations.settings import Settings
from formulations.staying import Counted, MustMove, limit_of, what_must_move

#: Units of work for a plan of the question; share of the time left, and least seconds, for its
#: proof.
WORK, SHARE, LEAST = 0.1, 0.2, 1.0


def must_move(instance: Instance, settings: Settings, clock: Clock) -> list[MustMove]:
    """What must move at least, in the units of each limit (in bytes if there is none).

    Empty where nothing must.
    """
    wanted = [counted for counted in Counted if limit_of(instance, counted) is not None]
    found = (_least(instance, each, settings, clock) for each in wanted or [Counted.BYTES])
    return [least for least in found if least is not None]


def _least(
    instance: Instance, counted: Counted, settings: Settings, clock: Clock
) -> MustMove | None:
    question = what_must_move(instance, counted)
    if not question.num_tables:
        return None
    own = replace(
        settings.for_another, options={}, call=None, on_progress=None, gap=0.0, workers=1,
        work_limit=min(WORK, clock.remaining()), time_limit=max(LEAST, clock.call.left()),
    )  # fmt: skip
    inner = Clock(own)
    outcome = registry.get("cpsat").load()(question, own, inner)
    if clock.counts:
        clock.spend(inner.work)
    seconds = None if clock.counts else max(LEAST, clock.share(SHARE))
    outcome = certify(question, outcome, seconds)
    proof, least = outcome.certificate, outcome.certified_bound
    if proof is None or least is None or least <= 0:
        return None
    return MustMove(counted, least, proof)
