"""What each process of the exchange tests does (spawned processes import this module)."""

from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from cuda_routing.bucketize import bucketize
from cuda_routing.exchange import exchange, group_by_feature, send_back
from cuda_routing.inverse import unbucketize
from cuda_routing.rules import Rule, owners

FEATURES, ROWS_OF_TABLE, DIM = 3, 500, 4
BLOCKS = 1000


def batch_of(rank: int, ranks: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lengths, keys and weights of one rank's batch; ranks differ in size, the last has no keys."""
    generator = np.random.default_rng([rank, ranks])
    rows = 0 if rank and rank == ranks - 1 else FEATURES * (5 + rank)
    lengths = generator.integers(0, 9, size=rows)
    keys = generator.integers(0, ROWS_OF_TABLE, size=int(lengths.sum()))
    return lengths, keys, generator.random(keys.size).astype(np.float32)


def row_of(keys: np.ndarray) -> np.ndarray:
    """A key's embedding row, [K, DIM], computed instead of stored."""
    return keys[:, None] * np.array([1.0, 2.0, -1.0, 0.5]) + np.arange(DIM)


def run(rank: int, ranks: int, folder: str) -> None:
    """A process's entry point: exchange, and compare with one process that knows all batches."""
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks
    )
    torch.set_num_threads(1)
    try:
        for rule in Rule:
            check_exchange(rank, ranks, rule)
            check_round_trip(rank, ranks, rule, dedup=False)
            check_round_trip(rank, ranks, rule, dedup=True)
        Path(folder, f"ok-{rank}").touch()
    finally:
        dist.destroy_process_group()


def bucketized(rank: int, ranks: int, rule: Rule, **options: object) -> object:
    """Bucketize one rank's batch as tensors."""
    lengths, keys, _ = batch_of(rank, ranks)
    return bucketize(
        torch.from_numpy(lengths), torch.from_numpy(keys), num_features=FEATURES, ranks=ranks,
        rule=rule, block_sizes=BLOCKS // ranks, backend="numpy", **options,
    )  # fmt: skip


def check_exchange(rank: int, ranks: int, rule: Rule) -> None:
    """Everything addressed to this rank arrives, source by source."""
    weights = torch.from_numpy(batch_of(rank, ranks)[2])
    received = exchange(bucketized(rank, ranks, rule, weights=weights))
    lengths, keys, moved = [], [], []
    for source in range(ranks):
        own = torch.from_numpy(batch_of(source, ranks)[2])
        sent = bucketized(source, ranks, rule, weights=own)
        ends = [0, *torch.cumsum(sent.keys_per_rank(), 0).tolist()]
        lengths.append(sent.lengths.reshape(ranks, -1)[rank])
        keys.append(sent.keys[ends[rank] : ends[rank + 1]])
        moved.append(sent.weights[ends[rank] : ends[rank + 1]])
    assert torch.equal(received.lengths, torch.cat(lengths))
    assert torch.equal(received.keys, torch.cat(keys))
    assert torch.equal(received.weights, torch.cat(moved))
    if rule is not Rule.CONTINUOUS:
        assert (owners(received.keys.numpy(), ranks, rule) == rank).all()


def check_round_trip(rank: int, ranks: int, rule: Rule, *, dedup: bool) -> None:
    """Rows return from their owners to the lookups that asked for them, and gradients go back."""
    keys = batch_of(rank, ranks)[1]
    result = bucketized(rank, ranks, rule, dedup=dedup)
    received = exchange(result)
    by_feature_lengths, by_feature, permute = group_by_feature(received, FEATURES)
    assert int(by_feature_lengths.sum()) == by_feature.numel()
    first = rank * (BLOCKS // ranks) if rule is Rule.CONTINUOUS else 0
    rows = torch.from_numpy(row_of(by_feature.numpy() + first)).requires_grad_()
    answers = unbucketize(send_back(received, rows[permute]), result.permute)
    np.testing.assert_array_equal(answers.detach().numpy(), row_of(keys))
    answers.sum().backward()
    lookups = torch.tensor([float(answers.numel())])
    gradients = torch.tensor([float(rows.grad.sum()) if rows.grad is not None else 0.0])
    dist.all_reduce(lookups)
    dist.all_reduce(gradients)
    assert lookups.item() == gradients.item()
