"""A small model and clusters as objects, for tests of the Python calls."""

from milp_planner import Cluster, Model

MODEL = Model.from_dict(
    {
        "name": "small",
        "workload": {"batch_per_rank": 512},
        "tables": [
            {"name": "users", "rows": "1M", "dim": 64, "pooling_factor": 2},
            {"name": "items", "rows": "2M", "dim": 64, "pooling_factor": 20},
            {"name": "clicks", "rows": "1M", "dim": 64, "kind": "dynamicemb", "optimizer": "adam"},
            {"name": "views", "rows": "1M", "dim": 64, "kind": "dynamicemb", "optimizer": "adam"},
        ],
    }
)


def cluster(machines: int = 1, hbm: str = "4GiB", ddr: str = "16GiB") -> Cluster:
    """Machines of two ranks each."""
    return Cluster.from_dict(
        {
            "name": "pairs",
            "profile": "h100",
            "machines": machines,
            "ranks_per_machine": 2,
            "hbm": hbm,
            "ddr": ddr,
            "interconnect": {"intra_machine": "450GB/s", "inter_machine": "50GB/s"},
        }
    )
