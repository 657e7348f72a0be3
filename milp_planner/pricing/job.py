"""Everything a price depends on beside the option itself."""

from __future__ import annotations

from dataclasses import dataclass

from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.model import Model
from milp_planner.inputs.workload import Workload
from milp_planner.pricing.columns import TableColumns, table_columns
from milp_planner.pricing.exchange import Links
from milp_planner.pricing.menu import Site, site_of
from milp_planner.pricing.profile import Profile
from milp_planner.pricing.traffic import Traffic, traffic_of


@dataclass(frozen=True, eq=False)
class Job:
    """One pricing run.

    Attributes
    ----------
    model, cluster, profile, links
        As given to :func:`milp_planner.pricing.price`.
    site : Site
    tables : TableColumns
        The model's tables as arrays.
    traffic : Traffic
        What one step asks of each of them.
    """

    model: Model
    cluster: Cluster
    profile: Profile
    links: Links
    site: Site
    tables: TableColumns
    traffic: Traffic

    @property
    def workload(self) -> Workload:
        """How the tables are used."""
        return self.model.workload

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return self.site.ranks


def job_of(model: Model, cluster: Cluster, profile: Profile, links: Links) -> Job:
    """Collect what prices depend on."""
    site = site_of(cluster)
    curves = (profile.caching, profile.hybrid, profile.uvm_caching)
    distinct = model.workload.prefetch_pipeline or any(c.over == "batch_cover" for c in curves)
    traffic = traffic_of(model, site.ranks, distinct)
    return Job(model, cluster, profile, links, site, table_columns(model), traffic)
