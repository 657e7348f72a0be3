"""The tiers in plain dictionaries and loops, whose results the compiled simulator must equal."""

from collections import Counter

from benchmarks.simulator.tiers import Shape

MASK = (1 << 64) - 1


def fmix64(key: int) -> int:
    """MurmurHash3's finaliser on Python integers."""
    key &= MASK
    for multiplier in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        key = ((key ^ (key >> 33)) * multiplier) & MASK
    return key ^ (key >> 33)


class Tier:
    """Buckets of slots; a slot holds a key or nothing."""

    def __init__(self, buckets: int, capacity: int) -> None:
        self.slots = [[None] * capacity for _ in range(buckets)]
        self.buckets, self.capacity = buckets, capacity

    def home(self, key: int) -> int:
        """The bucket of a key."""
        hashed = fmix64(key) & (MASK >> 1)
        return hashed % (self.buckets * self.capacity) // self.capacity

    def keys(self) -> set[int]:
        """Every key that it holds."""
        return {key for bucket in self.slots for key in bucket if key is not None}

    def insert(self, key: int, score: dict[int, int], protected: set[int]) -> int | None:
        """Store a key; return the key that it evicts, the key itself if none may be evicted, or
        None."""
        bucket = self.slots[self.home(key)]
        if None in bucket:
            bucket[bucket.index(None)] = key
            return None
        open_slots = [i for i, held in enumerate(bucket) if held not in protected]
        if not open_slots:
            return key
        slot = min(open_slots, key=lambda i: (score[bucket[i]], i))
        victim, bucket[slot] = bucket[slot], key
        return victim


class Oracle:
    """One rank's tiers."""

    def __init__(self, shape: Shape) -> None:
        self.shape, self.now, self.score = shape, 0, {}
        self.hbm = Tier(shape.hbm_buckets, shape.hbm_bucket)
        self.host = Tier(shape.host_buckets, shape.host_bucket)
        self.seen: set[int] = set()

    def step(self, batch: list[int]) -> dict[str, int]:
        """Look up one batch; return the counts of
        :class:`benchmarks.simulator.tiers.Step`."""
        self.now += 1
        times = Counter(batch)
        hbm = self.hbm.keys() if self.shape.hbm_slots else set()
        host = self.host.keys() if self.shape.mode == "HYBRID" else self.seen - hbm
        if self.shape.mode == "HBM_ONLY":
            host = set()
        for key, count in times.items():
            old = self.score.get(key, 0)
            self.score[key] = old + count if self.shape.frequency else self.now
        found = {
            "lookups": len(batch),
            "unique": len(times),
            "hits": sum(count for key, count in times.items() if key in hbm),
            "unique_hits": len(hbm & times.keys()),
            "host_hits": len(host & times.keys()),
            "new": len(times.keys() - hbm - host),
            "evicted": 0,
            "dropped": 0,
            "bypassed": 0,
        }
        self.seen |= times.keys()
        missing = sorted((key for key in times if key not in hbm), key=self.hbm.home)
        if self.shape.mode == "CACHING":
            self._cache(missing, set(times), found)
        elif self.shape.mode != "HOST_ONLY":
            self._hybrid([key for key in missing if key not in host], found)
        return found

    def _cache(self, missing: list[int], batch: set[int], found: dict[str, int]) -> None:
        for key in missing:
            victim = self.hbm.insert(key, self.score, batch)
            found["bypassed"] += victim == key
            found["evicted"] += victim not in (None, key)

    def _hybrid(self, missing: list[int], found: dict[str, int]) -> None:
        leaving, fresh = [], set()
        for key in missing:
            fresh.add(key)
            victim = self.hbm.insert(key, self.score, fresh)
            if victim is not None:
                leaving.append(victim)
        found["evicted"] += len(leaving)
        fresh = set()
        for key in leaving:
            fresh.add(key)
            lost = self.host.insert(key, self.score, fresh) if self._has_host else key
            if lost is not None:
                found["dropped"] += 1
                self.score.pop(lost)

    @property
    def _has_host(self) -> bool:
        return self.shape.mode == "HYBRID"
