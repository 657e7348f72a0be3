"""Which exchange a buffer belongs to."""

from tests.milp_planner.pricing.build import priced


def test_collectives_by_library_output_and_sharding_type() -> None:
    """Tables of one kind and sharding type share a collective; replicas exchange nothing."""
    options = priced({}, {}, {"output": "sequence"}, {"kind": "dynamicemb"})

    def collective(table: int, name: str) -> str | None:
        index = int(options.collective[options.index(table, name)])
        return None if index < 0 else options.collectives[index]

    assert collective(0, "row_wise/HBM_ONLY") == "torchrec/pooled/row_wise"
    assert collective(1, "row_wise/CACHING/0.1") == "torchrec/pooled/row_wise"
    assert collective(2, "row_wise/HBM_ONLY") == "torchrec/sequence/row_wise"
    assert collective(3, "row_wise/HOST_ONLY/roundrobin") == "dynamicemb/pooled/row_wise"
    assert collective(0, "data_parallel/HBM_ONLY") is None
