"""Published changes of the whole step beside what our prices say of the embeddings' part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.dlrmv4.study import run
from milp_planner import plan
from milp_planner.inputs import Model
from scenarios.batch.vary import vary_cluster, vary_model

CUT = ("user_x_artist", "user_x_album", "item_x_hour")
"""Tables that the trainer's planner cuts into columns on one node; the others are table-wise."""


def end_to_end() -> Iterator[str]:
    """Rows of the page's table."""
    plain, unique = _step(1), _step(1, dedup=True)
    wide = _step(1, exchange_dtype="fp32")
    two, two_unique = _step(2), _step(2, dedup=True)
    yield "| change | published, whole step | ours, embeddings' part |"
    yield "|---|---|---|"
    yield (
        "| fp16 exchange instead of fp32, one node | about 6% (56 ms of 941.6) | "
        f"{wide - plain:.0f} ms, {(wide - plain) / 941.6:.1%} of 941.6 |"
    )
    yield (
        "| deduplication, one node | 941.6 to 805.7 ms: 136 ms | "
        f"{plain:.1f} to {unique:.1f} ms: {plain - unique:.0f} ms |"
    )
    yield (
        f"| two nodes instead of one, without deduplication | 941.6 to 1108 ms: 166 ms | "
        f"{plain:.1f} to {two:.1f} ms: {two - plain:.0f} ms |"
    )
    yield (
        f"| the same with deduplication | 805.7 to 818 ms: 12 ms | "
        f"{unique:.1f} to {two_unique:.1f} ms: {two_unique - unique:.1f} ms |"
    )
    yield (
        "| GPUDirect RDMA, two nodes | throughput + 22%, weak scaling 65.7% to 79.8% | no term: "
        "links are priced at their bandwidth |"
    )


def _step(nodes: int, **axes: Any) -> float:
    """Milliseconds of the embeddings' part on so many nodes, by the trainer's sharding types.

    One node: eight tables table-wise and three cut, as logged; two: all row-wise, what the planner
    chooses on many ranks (the plan of that run is not published).
    """
    model, cluster = run()
    varied = vary_model(model, {"codec": "low_memory", **axes}).to_dict()
    for table in varied["tables"]:
        single = "column_wise" if table["name"] in CUT else "table_wise"
        table["constraints"] |= {
            "sharding_types": [single if nodes == 1 else "row_wise"],
            "modes": ["HBM_ONLY"],
        }
    found = plan(Model.from_dict(varied), vary_cluster(cluster, {"machines": nodes}), time_limit=20)
    if found.outcome.status.value != "optimal":
        raise RuntimeError(f"{nodes} nodes, {axes}: {found.outcome.status.value}")
    return found.outcome.objectives["step_time"] / 1e9
