"""Everything a price depends on beside the option itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.model import Model, Workload
from milp_planner.inputs.table import Table
from milp_planner.pricing.access import distinct_rows, unique_fraction
from milp_planner.pricing.columns import TableColumns, table_columns
from milp_planner.pricing.exchange import Links
from milp_planner.pricing.menu import Site, site_of
from milp_planner.pricing.profile import Profile
from milp_planner.pricing.units import FloatArray


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


@dataclass(frozen=True, eq=False)
class Traffic:
    """Per table, of one rank's batch; float arrays [tables].

    Attributes
    ----------
    ids : array
        Ids, deduplicated where the workload says so and the output is a sequence.
    raw_ids : array
        Ids before deduplication.
    outputs : array
        Embeddings: poolings with an id (pooled) or ids (sequence).
    dedup_lookups : array
        ``raw_ids`` where ids are deduplicated, else 0.
    distinct : array
        Distinct rows the global batch touches.
    """

    ids: FloatArray
    raw_ids: FloatArray
    outputs: FloatArray
    dedup_lookups: FloatArray
    distinct: FloatArray


def traffic_of(model: Model, ranks: int, needs_distinct: bool) -> Traffic:
    """Traffic of every table.

    Pooled outputs are min(1, pooling factor) a pooling; deduplication drops repeated
    ids of a rank's batch from sequences only (a pooled bag needs every one of its rows).

    Parameters
    ----------
    model : Model
    ranks : int
    needs_distinct : bool
        Whether any price depends on the distinct rows of a step (else they are not computed).

    References
    ----------
    TorchRec 1.8.0, ``planner/estimator/types.py`` (batch inputs and outputs).
    """
    batch, tables = model.workload.batch_per_rank, model.tables
    raw = np.array([batch * t.lookups_per_sample for t in tables], dtype=np.float64)
    ids, dedup = raw.copy(), np.zeros(len(tables))
    outputs = np.array([_outputs(t, batch) for t in tables], dtype=np.float64)
    distinct = np.zeros(len(tables))
    for i, table in enumerate(tables):
        if model.workload.dedup and table.output == "sequence":
            ids[i] = raw[i] * unique_fraction(table.access, table.rows, float(raw[i]))
            outputs[i], dedup[i] = ids[i], raw[i]
        if needs_distinct:
            distinct[i] = distinct_rows(table.access, table.rows, float(raw[i]), ranks)
    return Traffic(ids, raw, outputs, dedup, distinct)


def _outputs(table: Table, batch: int) -> float:
    if table.output == "sequence":
        return batch * table.lookups_per_sample
    mean = 1.0 if table.pooling_factor is None else table.pooling_factor
    return batch * table.num_features * table.num_poolings * min(1.0, mean)
