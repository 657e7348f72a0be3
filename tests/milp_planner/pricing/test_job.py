"""What a pricing run depends on."""

from __future__ import annotations

from milp_planner.pricing.exchange import links_of
from milp_planner.pricing.job import job_of
from milp_planner.pricing.profile import load_profile
from tests.milp_planner.pricing.build import cluster, model


def test_distinct_rows_are_computed_only_where_a_price_needs_them() -> None:
    """The h100 curve and a prefetch pipeline do, the a10 curve does not."""
    site = cluster()
    for profile, prefetch, needed in (("a10", False, False), ("a10", True, True),
                                      ("h100", False, True)):  # fmt: skip
        job = job_of(
            model({}, prefetch_pipeline=prefetch), site, load_profile(profile), links_of(site)
        )
        assert (job.traffic.distinct[0] > 0) == needed


def test_cpu_only_means_no_rank_has_hbm() -> None:
    """Zero HBM everywhere."""
    for hbm, expected in ((0, True), ("80GiB", False)):
        site = cluster(hbm=hbm)
        job = job_of(model({}), site, load_profile("a10"), links_of(site))
        assert job.site.cpu_only == expected
        assert job.ranks == 8
