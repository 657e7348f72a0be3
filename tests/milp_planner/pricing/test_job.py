"""What pricing computes for a job, and when."""

from __future__ import annotations

from milp_planner.pricing.exchange import links_of
from milp_planner.pricing.job import job_of
from milp_planner.pricing.profile import load_profile
from tests.milp_planner.pricing.build import cluster, model


def test_distinct_rows_are_computed_only_where_a_price_needs_them() -> None:
    """A prefetch pipeline and a curve over batch cover need them; the shipped curves do not."""
    site, shipped = cluster(), load_profile("a10")
    covered = shipped.caching.model_copy(update={"over": "batch_cover"})
    for profile, prefetch, needed in (
        (shipped, False, False),
        (shipped, True, True),
        (shipped.model_copy(update={"caching": covered}), False, True),
    ):
        job = job_of(model({}, prefetch_pipeline=prefetch), site, profile, links_of(site))
        assert (job.traffic.distinct[0] > 0) == needed


def test_cpu_only_means_no_rank_has_hbm() -> None:
    """Every rank has 0 bytes of HBM."""
    for hbm, expected in ((0, True), ("80GiB", False)):
        site = cluster(hbm=hbm)
        job = job_of(model({}), site, load_profile("a10"), links_of(site))
        assert job.site.cpu_only == expected
        assert job.ranks == 8
