"""Synthetic instances shaped like TorchRec's: any number of tables and ranks, from a seed.

Rows are log-uniform, dimensions and pooling factors mixed. Every table offers six options, four
where it is too narrow for columns: table-wise, column-wise and row-wise, each in HBM or cached from
DDR, with costs from bytes moved over round bandwidths (HBM 900 GB/s, cached 90 GB/s, exchange
25 GB/s). They are for growth measurements only: nothing is calibrated.
"""

from __future__ import annotations

import numpy as np

from formulations import Block, Instance, InstanceBuilder, Shard, Where

_BATCH = 1024
_PICO = 10**12
_HBM, _CACHED, _WIRE = 900e9, 90e9, 25e9


def synthetic(
    tables: int, ranks: int, seed: int = 0, fill: float = 1.3, per_machine: int = 8
) -> Instance:
    """An instance whose tables are ``fill`` times as large as all HBM.

    Parameters
    ----------
    tables, ranks : int
    seed : int
    fill : float
        Table bytes over total HBM; above 1 some tables must be cached.
    per_machine : int
        Ranks a machine.
    """
    rng = np.random.default_rng(seed)
    rows = np.exp(rng.uniform(np.log(1e4), np.log(1e8), tables))
    dims = rng.choice([16, 32, 64, 128, 256], tables)
    pooling = rng.integers(1, 50, tables)
    size = rows * dims * 4
    hbm = int(size.sum() / fill / ranks)
    machines = [list(range(i, min(ranks, i + per_machine))) for i in range(0, ranks, per_machine)]
    builder = InstanceBuilder(
        machines,
        ["compute", "exchange"],
        [("hbm", "rank", hbm), ("ddr", "machine", int(2 * size.sum() / len(machines)))],
        "busiest_rank",
        name=f"synthetic-{tables}x{ranks}-{seed}",
    )
    for table in range(tables):
        builder.add_table(f"t{table}")
        _options(builder, ranks, float(size[table]), int(dims[table]), int(pooling[table]))
    return builder.build()


def _options(builder: InstanceBuilder, ranks: int, size: float, dim: int, pooling: int) -> None:
    looked_up = _BATCH * ranks * pooling * dim * 4.0
    sent = _BATCH * ranks * dim * 4.0
    for mode, bandwidth in (("fused", _HBM), ("caching", _CACHED)):
        kept = 1.0 if mode == "fused" else 0.2
        spilled = 0.0 if mode == "fused" else 1.0

        def shard(
            parts: int, wire: float, kept: float = kept, spilled: float = spilled,
            bandwidth: float = bandwidth,
        ) -> Shard:  # fmt: skip
            use = {"hbm": int(size * kept / parts), "ddr": int(size * spilled / parts)}
            cost = [int(looked_up / parts / bandwidth * _PICO), int(wire / _WIRE * _PICO)]
            return Shard(use, cost)

        whole, every = Where.ANY_RANK, Where.EVERY_RANK
        builder.add_option(f"table_wise/{mode}", [Block(whole, [shard(1, sent)])])
        if dim >= 64:
            halves = Block(whole, [shard(2, sent / 2)], count=2)
            builder.add_option(f"column_wise/{mode}", [halves])
        builder.add_option(f"row_wise/{mode}", [Block(every, [shard(ranks, sent)])])
