"""What bounds a micro-DLRM step, named from its measured parts and the measured roofline."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from milp_planner.features.calibrate.micro_dlrm import SHAPES
from milp_planner.features.calibrate.timing import Sample

MOST = 0.5
"""A part that takes more of the step than this names the regime."""
NEAR_CEILING = 0.5
"""Share of the gather bandwidth that lookups must reach to be called bound by memory."""


@dataclass(frozen=True)
class Regime:
    """One shape's step against the machine's ceilings.

    Attributes
    ----------
    shape : str
    seconds, spread : float
        Median of the forward step, and its relative spread.
    shares : dict
        Share of the forward step by part: embedding (hash and lookup), mlp, rest (concatenation).
    training_seconds, training_spread : float
        The same of the training step.
    training_shares : dict
        Embedding there includes the sparse gradient and the update of the rows.
    bandwidth : float
        Bytes of the step (rows read, weights) per second of the whole step.
    lookup_bandwidth : float
        Bytes of the rows read per second of the embedding part.
    intensity : float
        Floating-point operations per byte.
    flops : float
        Operations per second of the whole step.
    ceiling : float
        Operations per second that the roofline allows at this intensity.
    name : str
        Of the forward step: ``memory`` (lookups take most of it, and reach half the gather
        bandwidth), ``lookup overhead`` (they take most of it and do not), ``MLP``, or ``mixed``.
    """

    shape: str
    seconds: float
    spread: float
    shares: dict[str, float]
    training_seconds: float
    training_spread: float
    training_shares: dict[str, float]
    bandwidth: float
    lookup_bandwidth: float
    intensity: float
    flops: float
    ceiling: float
    name: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def regime(
    name: str, forward: Sample, training: Sample, peak_flops: float, peak_bandwidth: float
) -> Regime:
    """Judge one shape's steps.

    Parameters
    ----------
    name : str
        A shape of :data:`~milp_planner.features.calibrate.micro_dlrm.SHAPES`.
    forward, training : Sample
        Timings by part.
    peak_flops, peak_bandwidth : float
        Measured: a large matrix product, a gather of wide rows from the far tier.

    References
    ----------
    S. Williams, A. Waterman, D. Patterson, "Roofline", CACM 52(4), 2009,
    doi:10.1145/1498765.1498785.
    """
    shape = SHAPES[name]
    shares = _shares(forward)
    lookups = shape.embedding_bytes / forward.part("embedding")
    intensity = shape.flops / shape.bytes
    return Regime(
        shape=name,
        seconds=forward.median,
        spread=forward.spread,
        shares=shares,
        training_seconds=training.median,
        training_spread=training.spread,
        training_shares=_shares(training),
        bandwidth=shape.bytes / forward.median,
        lookup_bandwidth=lookups,
        intensity=intensity,
        flops=shape.flops / forward.median,
        ceiling=min(peak_flops, intensity * peak_bandwidth),
        name=_name(shares, lookups / peak_bandwidth),
    )


def _shares(sample: Sample) -> dict[str, float]:
    parts = {part: sample.part(part) for part in sample.parts}
    return {part: seconds / sum(parts.values()) for part, seconds in parts.items()}


def _name(shares: dict[str, float], reached: float) -> str:
    if shares["embedding"] > MOST:
        return "memory" if reached >= NEAR_CEILING else "lookup overhead"
    return "MLP" if shares["mlp"] > MOST else "mixed"
