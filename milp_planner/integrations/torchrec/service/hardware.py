"""What a SKU is: capacities and bandwidths of one rank, from a cluster description."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from torchrec.distributed.planner.types import HardwareConfig

from milp_planner.errors import BadInput
from milp_planner.pricing.profile import load_profile

if TYPE_CHECKING:
    from torchrec.distributed.planner.dry_run.types import SkuOverride

    from milp_planner.inputs.cluster import Cluster

GIB = 2**30


def hardware_of(cluster: Cluster) -> HardwareConfig:
    """TorchRec's hardware description of a cluster's ranks.

    Parameters
    ----------
    cluster : Cluster
        Its ranks and machines must be equal. Capacities are taken as they are (reservations are
        TorchRec's to make), DDR in equal shares a rank.

    Returns
    -------
    HardwareConfig
        Bytes, and bytes a millisecond.

    Raises
    ------
    BadInput
        When ranks or machines differ.
    """
    first = cluster.machines[0]
    if any(machine != first for machine in cluster.machines) or len(set(first.ranks)) > 1:
        raise BadInput(
            f"cluster {cluster.name!r}: found ranks or machines that differ; allowed as a SKU: "
            "equal ones"
        )
    profile = load_profile(cluster.profile)
    network = cluster.interconnect
    within = None if network is None else network.intra_machine / 1000
    between = None if network is None else network.inter_machine
    return HardwareConfig(
        hbm_cap_bytes=first.ranks[0].hbm_bytes,
        ddr_cap_bytes=first.ddr_bytes // len(first.ranks),
        intra_host_bw=within,
        inter_host_bw=within if between is None else between / 1000,
        hbm_mem_bw=profile.hbm / 1000,
        ddr_mem_bw=profile.ddr / 1000,
        hbm_to_ddr_mem_bw=profile.host_link / 1000,
    )


def hardware_for(
    sku: str, known: Mapping[str, HardwareConfig] | None, override: SkuOverride | None
) -> HardwareConfig:
    """Hardware of one SKU with what the request overrides.

    Raises
    ------
    BadInput
        For a SKU that is not among those known, with the nearest.
    """
    if known is not None and sku not in known:
        near = get_close_matches(sku, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise BadInput(f"SKU {sku!r}: allowed: {', '.join(known)}{hint}")
    found = HardwareConfig() if known is None else known[sku]
    if override is None:
        return found
    # TorchRec writes bandwidths of n GB/s as n GiB a thousand milliseconds.
    changes = {
        "hbm_cap_bytes": None if override.hbm_gb is None else int(override.hbm_gb * GIB),
        "ddr_cap_bytes": None if override.ddr_gb is None else int(override.ddr_gb * GIB),
        "intra_host_bw": _bytes_per_millisecond(override.intra_host_bw),
        "inter_host_bw": _bytes_per_millisecond(override.inter_host_bw),
    }
    return replace(found, **{name: v for name, v in changes.items() if v is not None})


def _bytes_per_millisecond(gigabytes: float | None) -> float | None:
    return None if gigabytes is None else gigabytes * GIB / 1000
