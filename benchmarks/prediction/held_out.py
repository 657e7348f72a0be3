"""Steps that no calibration measures, and what a plan with its profile predicts for them."""

from typing import Any

from milp_planner.features.calibrate.steps import Ranges, StepSpec, StepTable
from milp_planner.inputs import Cluster, Model
from milp_planner.pricing.price import price
from milp_planner.pricing.profile import Profile
from milp_planner.pricing.step import stand_ins

HELD_OUT = Ranges(
    tables=(1, 3, 6), dims=(24, 48, 96, 192), poolings=(1, 3, 5, 12), alphas=(0.3, 0.7, 1.05),
    optimizers=("sgd", "rowwise_adagrad", "adam", "adagrad"), batches=(300, 7000), alike=False,
)  # fmt: skip
"""Mixed tables. Calibrations also have single tables, bags of one id and the optimizers but
Adagrad, none of the other values."""
CLUSTER = {
    "name": "this-machine", "profile": "torchrec-default", "machines": 1, "ranks_per_machine": 1,
    "hbm": "0B", "ddr": "1TB",
}  # fmt: skip
PS = 1e-12


def predicted(spec: StepSpec, profile: Profile) -> dict[str, float]:
    """Seconds of a step's parts: prices of its tables and, where known, of what is no table's."""
    tables = [_table(f"t{i}", table, spec.optimizer) for i, table in enumerate(spec.tables)]
    model = {"name": "step", "workload": {"batch_per_rank": spec.batch}, "tables": tables}
    cost = price(Model.from_dict(model), Cluster.from_dict(CLUSTER), profile).entries.cost
    parts = {"lookup": PS * float(cost[:, 0].sum()), "update": PS * float(cost[:, 2].sum())}
    step = profile.step
    if step is None or step.batch is None:
        return parts
    parts["lookup"] += step.lookup.step_seconds
    update = {str(name): terms for name, terms in step.update.items()}
    for name, share in stand_ins(spec.optimizer, spec.tables[0].dim, list(update)):
        parts["update"] += share * update[name].step_seconds
    return {**parts, "dense": step.batch.of(spec.batch, len(spec.tables), spec.columns)}


def _table(name: str, table: StepTable, optimizer: str) -> dict[str, Any]:
    """As in a model file, pinned whole to the one rank."""
    access = {"kind": "zipf", "alpha": table.alpha} if table.alpha else "unknown"
    return {
        "name": name, "rows": table.rows, "dim": table.dim, "pooling_factor": table.pooling,
        "optimizer": optimizer, "access": access,
        "constraints": {"sharding_types": "table_wise"},
    }  # fmt: skip
