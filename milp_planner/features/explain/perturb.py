"""Prices that may be wrong: change hardware, links or skew by a factor, and reprice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import assert_never

import numpy as np

from formulations import Instance
from milp_planner.errors import BadInput
from milp_planner.features.plan.one_ratio import asked
from milp_planner.files import Facts
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.access import (
    Access,
    Frequency,
    Histogram,
    MissRate,
    Sample,
    TopIds,
    Unknown,
    Zipf,
)
from milp_planner.inputs.changes import apply
from milp_planner.plans.compile import Compiled, compile_instance
from milp_planner.plans.placement import Plan
from milp_planner.pricing import price
from milp_planner.pricing.profile import Profile
from milp_planner.pricing.units import FloatArray

BANDWIDTHS = ("hbm", "ddr", "host_link")
CURVES = ("caching", "hybrid", "uvm_caching")
LINKS = ("intra_machine", "inter_machine")
SKEW = "skew"


@dataclass(frozen=True)
class Parameter(Facts):
    """An input of the prices."""

    name: str
    """A field of the profile (bandwidths, ``launch_seconds``, ``host_only``; ``caching``,
    ``hybrid``, ``uvm_caching``: the whole x_eff curve), a link of the cluster, or ``skew``: the
    power that all tables' access statistics are raised to
    (:func:`milp_planner.features.explain.perturb.with_skew`)."""
    spread: float
    """Relative: 0.2 is ±20%."""
    measured: bool
    """Whether the profile gives the spread; otherwise it is assumed."""


def parameters(plan: Plan, assumed: float) -> tuple[Parameter, ...]:
    """The inputs of a plan's prices, each with its spread.

    ``assumed`` is the spread where the profile gives none; BadInput unless within (0, 1).
    """
    if not 0 < assumed < 1:
        raise BadInput(f"spread is {assumed:g}; needs a share above 0 and below 1, such as 0.2")
    profile, links = plan.profile, plan.cluster.interconnect
    names = [*BANDWIDTHS, *CURVES, "host_only"]
    names += ["launch_seconds"] if profile.kernel.launch_seconds > 0 else []
    if links is not None:
        names += [name for name in LINKS if getattr(links, name) is not None]
    names += [SKEW] if any(is_skewed(table.access) for table in plan.model.tables) else []
    known: dict[str, float] = dict(profile.spread.items())
    return tuple(Parameter(n, known.get(n, assumed), n in known) for n in names)


def repriced(plan: Plan, factors: Mapping[str, float]) -> Instance:
    """The plan's Instance with some parameters multiplied by a factor each; pins and limits stay.

    x_eff stays within [0, 1]. BadInput when this version does not price the same options.
    """
    options = price(_model(plan.model, factors), *_prices(plan, factors))
    old = plan.instance
    if tuple(options.names) != tuple(old.option_names):
        raise BadInput(
            "the plan's options are not those this version prices "
            "(imported, or made by another version): plan again to change its prices"
        )
    new = Compiled(plan.model, plan.cluster, options, compile_instance(options, old.objective))
    return replace(
        asked(new, plan.outcome.detail), pins=old.pins, forbidden=old.forbidden,
        current=old.current, max_moved_tables=old.max_moved_tables,
        max_moved_bytes=old.max_moved_bytes,
    )  # fmt: skip


def same_prices(a: Instance, b: Instance) -> bool:
    """Whether two Instances of the same options have the same costs and uses."""
    return all(
        np.array_equal(getattr(a, field), getattr(b, field))
        for field in ("shard_cost", "shard_use", "block_shards", "shard_repeat")
    )


def _prices(plan: Plan, factors: Mapping[str, float]) -> tuple[Cluster, Profile]:
    data = {"cluster": plan.cluster.to_dict(), "profile": plan.profile.to_dict()}
    homes = dict.fromkeys(LINKS, "cluster.interconnect") | {"launch_seconds": "profile.kernel"}
    changes = {
        f"{homes.get(name, 'profile')}.{name}": f"×{Fraction(factor)}"
        for name, factor in factors.items()
        if name != SKEW
    }
    links = plan.cluster.interconnect
    inside = changes.get("cluster.interconnect.intra_machine")
    if inside and links is not None and links.domains is not None and links.domains.bandwidth:
        changes["cluster.interconnect.domains.bandwidth"] = inside
    apply(data, changes)
    data["profile"]["host_only"] = min(1.0, data["profile"]["host_only"])
    return Cluster.from_dict(data["cluster"]), Profile.from_dict(data["profile"])


def _model(model: Model, factors: Mapping[str, float]) -> Model:
    power = factors.get(SKEW, 1.0)
    tables = tuple(
        table.model_copy(update={"access": with_skew(table.access, table.rows, power)})
        for table in model.tables
    )
    return model.model_copy(update={"tables": tables})


_LARGEST_ALPHA = 10.0
"""The largest Zipf exponent a model file may give."""


def is_skewed(access: Access) -> bool:
    """Whether the statistics distinguish rows, so that the skew can be changed."""
    if isinstance(access, Zipf):
        return access.alpha > 0
    return not isinstance(access, Unknown) or access.measured_skew is not None


def with_skew(access: Access, rows: int, power: float) -> Access:
    """Access statistics with every row's share of the lookups raised to a positive power.

    A miss-rate curve is read as that of an ideal cache: the fall of the miss rate between two
    points is shared evenly by the rows between them. Misses that remain at its end are first
    accesses and stay. The measured excess of the busiest rank over the mean is multiplied by
    ``power``. A measured unique fraction stays.
    """
    if power == 1.0:
        return access
    if (measured := access.measured_skew) is not None:
        load = 1 + (measured.max_over_mean - 1) * power
        measured = measured.model_copy(update={"max_over_mean": load})
        access = access.model_copy(update={"measured_skew": measured})
    if isinstance(access, Zipf):
        return access.model_copy(update={"alpha": min(_LARGEST_ALPHA, access.alpha * power)})
    if isinstance(access, Histogram):
        counts, mass = np.array(access.bins).T
        bins = zip(counts.tolist(), _powered(counts, mass, power).tolist(), strict=True)
        return access.model_copy(update={"bins": tuple(bins)})
    if isinstance(access, TopIds):
        return _top_ids(access, rows, power)
    if isinstance(access, MissRate):
        return _miss_rate(access, power)
    if isinstance(access, Unknown | Sample | Frequency):  # files became histograms on reading
        return access
    assert_never(access)


def _top_ids(access: TopIds, rows: int, power: float) -> TopIds:
    shares = np.array([hot.share for hot in access.ids])
    counts = np.append(np.ones(len(shares)), max(rows - len(shares), 1))
    mass = np.append(shares, max(1.0 - float(shares.sum()), 0.0))
    made = zip(access.ids, _powered(counts, mass, power).tolist(), strict=False)
    return access.model_copy(
        update={"ids": tuple(hot.model_copy(update={"share": share}) for hot, share in made)}
    )


def _miss_rate(access: MissRate, power: float) -> MissRate:
    points = access.points if access.points[0][0] == 0 else ((0.0, 1.0), *access.points)
    ratio, miss = np.array(points).T
    hits = _powered(np.diff(ratio), -np.diff(miss), power) * (miss[0] - miss[-1])
    changed = np.clip(miss[0] - np.cumsum(hits), miss[-1], miss[0])
    made = [points[0], *zip(ratio[1:].tolist(), changed.tolist(), strict=True)]
    return access.model_copy(update={"points": tuple(made[-len(access.points) :])})


def _powered(counts: FloatArray, mass: FloatArray, power: float) -> FloatArray:
    """New lookup shares of classes of ``counts`` rows, from their shares ``mass``; sum to 1."""
    rows = np.maximum(counts, np.finfo(float).tiny)
    with np.errstate(divide="ignore"):
        logs = np.where(mass > 0, np.log(rows) + power * (np.log(mass) - np.log(rows)), -np.inf)
    if not (mass > 0).any():
        return mass
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())
