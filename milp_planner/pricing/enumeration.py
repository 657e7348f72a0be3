"""Which choices are legal for a table on a cluster, and why the others are not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.constraints import LARGEST_L1, Constraints, Mode
from milp_planner.inputs.model import Model, Workload
from milp_planner.inputs.table import Table
from milp_planner.pricing.options import SHARDING_TYPES, TIERED, Choice
from milp_planner.pricing.runtimes.registry import home, takers
from milp_planner.pricing.runtimes.room import Runtime
from milp_planner.pricing.site import Site, TableTraits, site_of

ONE = Fraction(1)


@dataclass(frozen=True)
class Enumeration:
    """Legal choices of a table, and a sentence for every family of choices that is not offered."""

    choices: tuple[Choice, ...]
    names: tuple[str, ...]
    refused: tuple[str, ...]


def traits_of(table: Table, work: Workload) -> TableTraits:
    """The traits of a table; its own cache ratios take precedence over the workload's."""
    runtime, own = home(table.kind, table.key_value.virtual), table.constraints.cache_ratios
    no_store = runtime.no_store(table, work.trains)
    l1_ratios = tuple(r for r in own if r <= LARGEST_L1) if own else work.l1_ratios
    stashes = work.stash_window_ms is not None and work.storage_model == "runtime" and work.trains
    twins = {"allow": (False, True), "always": (True,), "never": (False,)}
    return TableTraits(
        kind=table.kind,
        output=table.output,
        dim=table.dim,
        constraints=table.constraints,
        ratios=own or work.cache_ratios,
        dist_types=tuple(dict.fromkeys(table.dist_types)),
        fuses=work.fusion == "honoured",
        virtual=table.key_value.virtual,
        l1_ratios=() if no_store else l1_ratios,
        no_store=no_store,
        stash=tuple(
            each for each in twins[table.constraints.stash]
            if not each or (stashes and runtime.stashes)
        ),
        stash_caches=work.stash_caches,
    )  # fmt: skip


def enumerations_of(model: Model, cluster: Cluster) -> list[Enumeration]:
    """The enumeration of every table of a model."""
    site = site_of(cluster)
    return [enumeration_of(traits_of(table, model.workload), site) for table in model.tables]


@lru_cache(maxsize=4096)
def enumeration_of(traits: TableTraits, site: Site) -> Enumeration:
    """All legal choices, in a fixed order.

    A choice is legal if its sharding type and mode suit the kind of table, the cluster has the
    machines and ranks for it, and the table's constraints allow it. Of two names for the same
    placement only one is offered: on a single machine table_row_wise equals row_wise and
    table_column_wise equals column_wise, so the former are offered only if the constraints do not
    allow the latter. The same holds for table_row_wise if a single row group is the whole cluster.
    """
    refused: list[str] = []
    shapes = list(_shapes(traits, site, refused))
    choices = [  # data-parallel tables are dense, in HBM (DDR on CPUs), as their shape says
        replace(shape, **fields)
        for shape in shapes
        for fields in _mode_fields(traits, site)
        if shape.sharding != "data_parallel"
        or (fields["mode"] == shape.mode and not fields["stash"])
    ]
    choices = [choice for choice in choices if _pin_allows(traits.constraints, choice)]
    refused += _without_store(traits, site)
    if traits.constraints.stash == "always" and not any(choice.stash for choice in choices):
        refused.append(f"stash: {NO_STASH}")
    if shapes and not choices:
        refused.append("no allowed mode goes with the allowed sharding types")
    return Enumeration(tuple(choices), tuple(choice.name for choice in choices), tuple(refused))


def _mode_fields(traits: TableTraits, site: Site) -> Iterator[dict[str, Any]]:
    """Runtime, mode, ratio, routing and fusion group, as fields of a choice."""
    for runtime, mode, ratio in _modes(traits, site):
        ways = product(runtime.routes(traits), runtime.groups(traits, mode), traits.stash)
        for dist_type, group, stash in ways:
            leaves = mode == "HBM_ONLY" or (mode == "CACHING" and traits.stash_caches)
            if not stash or (leaves and not site.replicated):
                yield {
                    "runtime": runtime.name, "mode": mode, "ratio": ratio,
                    "dist_type": dist_type, "caching_group": group, "stash": stash,
                }  # fmt: skip


NO_STASH = (
    "it needs stash_window_ms in the workload, training, HBM, a single sharding group, and a "
    "TorchRec table in HBM_ONLY (or CACHING, with stash_caches) that is not data_parallel"
)
"""Why a table that must be stashed cannot be."""
UNSYNCED = {
    "HYBRID": "TorchRec's tables have no such mode",
    "CACHING": "2D's sync() averages rows in host memory and misses what a cache has changed",
    "SSD": "2D's sync() averages no rows on SSD",
}
"""Why modes with two tiers are not offered if sharding groups are averaged."""


def _without_store(traits: TableTraits, site: Site) -> Iterator[str]:
    """Why SSD is not offered although requested; why a virtual table has no option."""
    if site.replicated and traits.constraints.modes is not None:
        for mode in TIERED:
            if mode in traits.constraints.modes:
                yield f"{mode}: {UNSYNCED[mode]}"
        return
    if not traits.virtual and "SSD" not in (traits.constraints.modes or ()):
        return
    if traits.no_store:
        yield f"{'virtual tables' if traits.virtual else 'SSD'}: {traits.no_store}"
    elif site.cpu_only:
        yield "key-value kernels need HBM for their cache"
    elif not site.has_ssd:
        yield "SSD: no machine of the cluster has any (ssd: {size: …, bandwidth: …})"


def _modes(traits: TableTraits, site: Site) -> Iterator[tuple[Runtime, Mode, Fraction]]:
    """Runtimes, their modes and ratios, as far as the cluster and the constraints allow."""
    allowed = traits.constraints.modes
    for runtime in takers(traits.kind, traits.virtual):
        for mode, ratio in runtime.modes(traits, site):
            if site.cpu_only and mode != "HOST_ONLY":
                continue
            if site.replicated and mode in TIERED and not traits.virtual:
                continue  # virtual tables are refused before, unless nothing is averaged
            if allowed is None or mode in allowed:
                yield runtime, mode, ratio


def _shapes(traits: TableTraits, site: Site, refused: list[str]) -> Iterator[Choice]:
    """Sharding types with their cuts and places, in any mode."""
    runtime = home(traits.kind, traits.virtual)
    legal, why = runtime.sharding_types(traits)
    allowed = traits.constraints.sharding_types
    for sharding in SHARDING_TYPES:
        if allowed is not None and sharding not in allowed:
            continue
        if sharding not in legal:
            if allowed is not None:
                refused.append(f"{sharding}: {why}")
            continue
        reason = runtime.why_not(sharding, traits, site)
        if reason:
            refused.append(f"{sharding}: {reason}")
            continue
        base = Choice(sharding, "HOST_ONLY" if site.cpu_only else "HBM_ONLY", ONE, traits.dim)
        found = list(runtime.shapes(base, traits, site))
        if not found:
            refused.append(f"{sharding}: {runtime.no_shape(traits)}")
        yield from found


def _pin_allows(limits: Constraints, choice: Choice) -> bool:
    """Whether a choice matches the pin; column shards on SSD must be pinned to different ranks."""
    pin = limits.pin
    if pin is None:
        return True
    if choice.mode == "SSD" and len(set(choice.pinned or ())) < len(choice.pinned or ()):
        return False
    wanted = (
        (pin.mode, choice.mode),
        (pin.sharding_type, choice.sharding),
        (pin.cache_ratio, choice.ratio),
        (pin.dist_type, choice.dist_type),
        (pin.column_width, choice.width),
        (pin.num_nodes, choice.nodes),
        (pin.stash, choice.stash),
    )
    return all(want is None or want == have for want, have in wanted)
