"""Rules: published vectors, plain-Python references, and the defect rule 3 removes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuda_routing.errors import RoutingError
from cuda_routing.rules import (
    Rule,
    as_index_type,
    block_size_of,
    fmix64,
    local_keys,
    owners,
    splitmix64,
)
from tests.corpus import mistakes

M64 = (1 << 64) - 1
FMIX_VECTORS = {
    0: 0,
    1: 0xB456BCFC34C2CB2C,
    2: 0x3ABF2A20650683E7,
    42: 0x810879608E4259CC,
    1 << 31: 0xE3BECA1F9A7E4886,
    -1: 0x64B5720B4B825F21,
}


def plain_fmix64(k: int) -> int:
    """The finaliser in Python integers."""
    k ^= k >> 33
    k = k * 0xFF51AFD7ED558CCD & M64
    k ^= k >> 33
    k = k * 0xC4CEB9FE1A85EC53 & M64
    return k ^ k >> 33


def plain_splitmix64(state: int) -> int:
    """SplitMix64's output in Python integers."""
    z = state + 0x9E3779B97F4A7C15 & M64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & M64
    z = (z ^ z >> 27) * 0x94D049BB133111EB & M64
    return z ^ z >> 31


def plain_route(key: int, bits: int, ranks: int, rule: Rule, block: int) -> tuple[int, int]:
    """Owner and local key (both unsigned) straight from the definition."""
    u = key & ((1 << bits) - 1)
    if rule is Rule.CONTINUOUS:
        inside = u < block * ranks
        return (u // block, u % block) if inside else (u % ranks, u // ranks)
    if rule is Rule.ROUNDROBIN:
        return u % ranks, u
    if rule is Rule.HASH_ROUNDROBIN:
        return plain_fmix64(u) % ranks, u
    return plain_splitmix64(u) * ranks >> 64, u


@pytest.mark.parametrize(("key", "expected"), FMIX_VECTORS.items())
def test_fmix64_vectors(key: int, expected: int) -> None:
    """The hash gives the published values."""
    assert int(fmix64(np.array([key], dtype=np.int64))[0]) == expected


def test_splitmix64_vector() -> None:
    """The first output of SplitMix64 seeded with 0 is the well-known one."""
    assert int(splitmix64(np.array([0]))[0]) == 0xE220A8397B1DCDAF


@given(
    keys=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20),
    ranks=st.sampled_from([1, 2, 3, 7, 8, 64, 255, 256, 512, 1024, 99991]),
    rule=st.sampled_from(list(Rule)),
    block=st.sampled_from([0, 1, 5, 1000, 2**40, 2**62, 2**63 - 1]),
)
def test_int64_matches_definition(keys: list[int], ranks: int, rule: Rule, block: int) -> None:
    """Owner and local key equal Python's big integers, corners of 64 bits included."""
    array = np.array(keys, dtype=np.int64)
    owner = owners(array, ranks, rule, block_size=block)
    local = local_keys(array, ranks, rule, block_size=block)
    expected = [plain_route(k, 64, ranks, rule, block) for k in keys]
    assert owner.tolist() == [o for o, _ in expected]
    assert local.view(np.uint64).tolist() == [x for _, x in expected]


@given(
    keys=st.lists(st.integers(-(2**31), 2**31 - 1), max_size=20),
    ranks=st.sampled_from([1, 2, 7, 8, 48, 512]),
    rule=st.sampled_from(list(Rule)),
    block=st.sampled_from([0, 3, 2**30, 2**40]),
)
def test_int32_is_zero_extended(keys: list[int], ranks: int, rule: Rule, block: int) -> None:
    """A 32-bit key counts as the unsigned number with its 32 bits."""
    array = np.array(keys, dtype=np.int32)
    owner = owners(array, ranks, rule, block_size=block)
    expected = [plain_route(k, 32, ranks, rule, block) for k in keys]
    assert owner.tolist() == [o for o, _ in expected]
    local = local_keys(array, ranks, rule, block_size=block)
    assert local.dtype == np.int32
    assert local.view(np.uint32).tolist() == [x for _, x in expected]


@given(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=20), st.sampled_from([7, 8, 48]))
def test_dynamicemb_int32_truncates_the_hash(keys: list[int], ranks: int) -> None:
    """The flag keeps 32 bits of the hash, for 32-bit keys only."""
    array = np.array(keys, dtype=np.int32)
    owner = owners(array, ranks, "hash_roundrobin", dynamicemb_int32=True)
    low = [plain_fmix64(k & 0xFFFFFFFF) & 0xFFFFFFFF for k in keys]
    assert owner.tolist() == [x % ranks for x in low]
    wide = array.astype(np.int64)
    same = owners(wide, ranks, "hash_roundrobin", dynamicemb_int32=True)
    assert same.tolist() == owners(wide, ranks, "hash_roundrobin").tolist()


@pytest.mark.parametrize("rule", list(Rule))
@pytest.mark.parametrize("width", [32, 64])
def test_unsigned_keys_equal_signed_ones_of_the_same_bits(rule: Rule, width: int) -> None:
    """uint64 keys above 2**63 go where the int64 of the same bits goes, and so in 32 bits."""
    bits = np.array([0, 1, 2 ** (width - 1), 2**width - 1], dtype=f"uint{width}")
    unsigned, same = (
        owners(keys, 7, rule, block_size=1000) for keys in (bits, bits.view(f"int{width}"))
    )
    assert unsigned.tolist() == same.tolist()


def test_boundaries_by_hand() -> None:
    """Upper-bound search, empty ranks skipped, beyond the last boundary u mod P."""
    keys, edges = np.array([0, 3, 4, 9, 10, 11]), [0, 4, 4, 10]
    assert owners(keys, 3, 0, boundaries=edges).tolist() == [0, 0, 2, 2, 10 % 3, 11 % 3]
    assert local_keys(keys, 3, 0, boundaries=edges).tolist() == [0, 3, 0, 5, 10 // 3, 11 // 3]


def reachable_share(rule: Rule, ranks: int, rank: int) -> float:
    """Share of the buckets of one local table (256 buckets of 128) that its keys can reach."""
    buckets, bucket_capacity = 256, 128
    keys = np.arange(ranks * 5_000, dtype=np.int64)
    mine = keys[owners(keys, ranks, rule) == rank]
    slot = (fmix64(mine) & np.uint64(2**63 - 1)) % np.uint64(buckets * bucket_capacity)
    return len(np.unique(slot // np.uint64(bucket_capacity))) / buckets


@pytest.mark.parametrize(("ranks", "share"), [(128, 1.0), (256, 0.5), (512, 0.25)])
def test_hash_roundrobin_cannot_reach_every_bucket(ranks: int, share: float) -> None:
    """Routing and bucket share their hash, so above 128 ranks parts of a table stay empty."""
    assert reachable_share(Rule.HASH_ROUNDROBIN, ranks, rank=3) == share


@pytest.mark.parametrize("ranks", [128, 256, 512])
def test_hash_independent_reaches_every_bucket(ranks: int) -> None:
    """Under hash_independent, keys reach every bucket of the local table."""
    assert reachable_share(Rule.HASH_INDEPENDENT, ranks, rank=3) == 1.0


def test_parse_names_codes_and_typos() -> None:
    """Names and codes are read; a typo gets the nearest name."""
    assert Rule.parse("hash_roundrobin") is Rule.parse(2) is Rule.HASH_ROUNDROBIN
    with pytest.raises(RoutingError, match="did you mean 'roundrobin'"):
        Rule.parse("round_robin")
    with pytest.raises(RoutingError, match="code 9"):
        Rule.parse(9)


@pytest.mark.parametrize(("kwargs", "words"), mistakes(__file__, "bad arguments are named"))
def test_bad_arguments_are_named(kwargs: dict[str, object], words: str) -> None:
    """Each wrong argument is refused with a sentence that names it."""
    with pytest.raises(RoutingError, match=words):
        owners(np.array([1, 2]), **kwargs)  # type: ignore[arg-type]


def test_float_keys_are_refused_and_empty_is_fine() -> None:
    """Floats are not keys; an empty list is allowed."""
    with pytest.raises(RoutingError, match="float64"):
        owners(np.array([1.0]), 2, 1)
    assert owners([], 2, 1).size == 0


def test_block_size_rounds_up() -> None:
    """Ten rows on four ranks make blocks of three."""
    assert block_size_of(10, 4) == 3


def test_as_index_type_takes_either_extension() -> None:
    """A 32-bit key reads the same whether it was sign- or zero-extended into 64 bits."""
    extended = np.array([-1, 2**32 - 1, 5])
    assert as_index_type(extended, "int32").tolist() == [-1, -1, 5]
    assert as_index_type(extended, "int32").dtype == np.int32
    assert as_index_type(np.array([7], np.int32), "int64").dtype == np.int64


def test_as_index_type_refuses_what_does_not_fit() -> None:
    """A key of more than 32 bits, or an unknown type, is refused and named."""
    with pytest.raises(RoutingError, match="key 4294967296 does not fit index_type int32"):
        as_index_type([1, 2**32], "int32")
    with pytest.raises(RoutingError, match=r"unknown index_type 'int3'.*did you mean 'int32'"):
        as_index_type([1], "int3")
