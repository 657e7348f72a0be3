"""Access distributions: shares against plain sums, and the de-duplication estimate.

Per-feature settings: spread to every feature, checked, and refused by name.

Keys from files of every kind, read in pieces, and what is refused.
"""

import gzip
from pathlib import Path

import numpy as np
import pytest

from cuda_routing.distributions import HEAD, after_dedup, histogram, sample, strided, uniform, zipf
from cuda_routing.errors import RoutingError
from cuda_routing.features import make_features
from cuda_routing.key_files import KeyFiles
from cuda_routing.rules import Rule


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 1.05, 1.8])
def test_zipf_tail_masses_equal_the_plain_sum(alpha: float) -> None:
    """Every evenly spread range of ids has the share that its keys add up to."""
    rows = 500_000
    load = zipf(rows, alpha)
    weights = np.arange(1, rows + 1, dtype=np.float64) ** -alpha
    share = weights / weights.sum()
    np.testing.assert_allclose(load.shares, share[:HEAD], rtol=1e-9)
    cumulative = np.concatenate([[0.0], np.cumsum(share)])
    exact = cumulative[load.stops] - cumulative[load.starts]
    np.testing.assert_allclose(load.segment_shares, exact, rtol=1e-7, atol=1e-12)


def test_zipf_small_table_is_exact() -> None:
    """Three keys at alpha 1 get 6/11, 3/11 and 2/11."""
    load = zipf(3, 1.0)
    np.testing.assert_allclose(load.shares, [6 / 11, 3 / 11, 2 / 11])
    assert load.segment_shares.size == 0
    assert load.hottest_key_share == pytest.approx(6 / 11)


def test_zipf_shuffled_keeps_shares_and_moves_ids() -> None:
    """Shuffling gives rows other ids of the table, all distinct, and keeps their shares."""
    plain, mixed = zipf(1000, 1.2), zipf(1000, 1.2, shuffle_seed=1)
    np.testing.assert_allclose(plain.shares, mixed.shares)
    assert sorted(mixed.keys.tolist()) == list(range(1000))
    assert mixed.keys.tolist() != plain.keys.tolist()


def test_uniform_of_a_billion_rows_lists_no_key() -> None:
    """A large uniform table is one range of ids."""
    load = uniform(10**9)
    assert load.keys.size == 0
    assert load.hottest_key_share == pytest.approx(1e-9)


def test_strided_lists_every_eighth_key() -> None:
    """Stride 8 from 3 over 20 rows is 3, 11, 19."""
    assert strided(20, 8, 3).keys.tolist() == [3, 11, 19]


def test_histogram_adds_repeated_keys() -> None:
    """Counts of a key given twice add up."""
    load = histogram([5, 7, 5], [1, 2, 1])
    assert load.keys.tolist() == [5, 7]
    assert load.shares.tolist() == [0.5, 0.5]


def test_sample_counts_lookups() -> None:
    """A sample's shares are its frequencies."""
    load = sample(np.array([4, 4, 9, 4]))
    assert dict(zip(load.keys.tolist(), load.shares.tolist(), strict=True)) == {4: 0.75, 9: 0.25}


def test_after_dedup_matches_a_simulation() -> None:
    """The expected number of distinct keys of a batch agrees with drawn batches."""
    load, lookups = zipf(2000, 1.1), 5000
    kept, share = after_dedup(load, lookups)
    generator = np.random.default_rng(0)
    distinct = [
        np.unique(generator.choice(2000, size=lookups, p=load.shares)).size for _ in range(30)
    ]
    assert share * lookups == pytest.approx(np.mean(distinct), rel=0.01)
    assert kept.hottest_key_share == pytest.approx(1 / (share * lookups), rel=1e-3)


def test_after_dedup_of_one_lookup_changes_nothing() -> None:
    """A batch of one lookup has nothing to de-duplicate, in the tail either."""
    load = zipf(10**7, 1.05)
    kept, share = after_dedup(load, 1)
    assert share == pytest.approx(1.0)
    np.testing.assert_allclose(kept.segment_shares, load.segment_shares, rtol=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        lambda: uniform(0),
        lambda: zipf(10, -1.0),
        lambda: strided(10, 0),
        lambda: strided(10**9, 2),
        lambda: histogram([1], [0]),
        lambda: histogram([1, 2], [1]),
        lambda: sample([]),
        lambda: after_dedup(uniform(5), 0),
    ],
)
def test_nonsense_is_refused(call: object) -> None:
    """Empty tables, negative exponents and empty histograms are refused."""
    with pytest.raises(RoutingError):
        call()  # type: ignore[operator]


def test_single_values_are_spread() -> None:
    """A single rule, block size or batch size applies to all features."""
    found = make_features(3, 12, 4, "continuous", block_sizes=5)
    assert found.rules.tolist() == [0, 0, 0]
    assert found.block_sizes.tolist() == [5, 5, 5]
    assert found.batch_sizes.tolist() == [4, 4, 4]
    assert found.row_starts.tolist() == [0, 4, 8, 12]
    assert (found.count, found.rows, found.renumbers) == (3, 12, True)


def test_block_sizes_of_other_rules_are_ignored() -> None:
    """Only continuous features use a block size."""
    found = make_features(2, 2, 4, [Rule.ROUNDROBIN, 0], block_sizes=[99, 7])
    assert found.block_sizes.tolist() == [0, 7]


def test_arrays_of_codes_are_read() -> None:
    """A NumPy array of dist_type codes gives one rule per feature."""
    found = make_features(3, 3, 2, np.array([1, 2, 3], np.int32))
    assert found.rules.tolist() == [1, 2, 3]
    assert not found.renumbers


def test_one_row_each() -> None:
    """The de-duplicated view has one row per feature."""
    found = make_features(2, 10, 2, 1, batch_sizes=[3, 7]).one_row_each()
    assert found.batch_sizes.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rule": [1, 2, 1]}, "2 features"),
        ({"rule": "hash"}, "unknown dist_type"),
        ({"rule": [1, 0], "block_sizes": [0, None]}, "feature 1"),
        ({"rule": 0, "block_sizes": [3]}, "2 features"),
        ({"rule": 1, "batch_sizes": [1, 2]}, "add up to 4"),
        ({"rule": 1, "batch_sizes": [5, -1]}, "batch_sizes"),
        ({"rule": 1, "boundaries": [None]}, "2 features"),
        ({"rule": [0, 1], "boundaries": [None, [0, 1, 2, 3]], "block_sizes": 1}, "feature 1"),
        ({"rule": 1, "ranks": 1 << 21}, "ranks"),
    ],
)
def test_refusals(options: dict[str, object], words: str) -> None:
    """The error for each contradiction names the feature or the count."""
    arguments: dict[str, object] = {"num_features": 2, "rows": 4, "ranks": 3}
    with pytest.raises(RoutingError, match=words):
        make_features(**(arguments | options))  # type: ignore[arg-type]


KEYS = np.array([5, -1, 2**62, 7, 7, 0, 3], dtype=np.int64)


def write(folder: Path, name: str) -> Path:
    """Write the keys in the format that the name's ending says."""
    path = folder / name
    text = "".join(f"{key}\n" for key in KEYS[:3].tolist()) + "\n" + "7\n7 \n0\n3"
    if name.endswith(".npy"):
        np.save(path, KEYS)
    elif name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode(), mtime=0))
    elif name.endswith((".txt", ".csv")):
        path.write_text(text)
    else:
        KEYS.tofile(path)
    return path


@pytest.mark.parametrize("name", ["k.npy", "k.bin", "k.i64", "k.txt", "k.csv", "k.txt.gz"])
@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_every_kind_in_pieces(tmp_path: Path, name: str, chunk: int) -> None:
    """Pieces stay within the asked size, add up to the keys, and can be read again."""
    files = KeyFiles([write(tmp_path, name)], chunk)
    for _ in range(2):
        pieces = list(files)
        assert max(piece.size for piece in pieces) <= chunk
        assert np.concatenate(pieces).tolist() == KEYS.tolist()


def test_several_files_follow_each_other(tmp_path: Path) -> None:
    """Files are read in the order given; raw 32-bit keys keep their type."""
    small = tmp_path / "s.i32"
    np.array([1, 2], np.int32).tofile(small)
    pieces = list(KeyFiles([small, write(tmp_path, "k.npy")]))
    assert pieces[0].dtype == np.int32
    assert [len(piece) for piece in pieces] == [2, 7]


LITERAL = "{'descr': '<i8', 'fortran_order': False, 'shape': "


def npy(header: str) -> bytes:
    """A .npy of eight keys with any text for its header."""
    text = header.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + bytes(64)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.txt", b"1\n2\nx3\n", "line 3: 'x3'"),
        ("a.txt", b"1\n99999999999999999999\n", "line 2"),
        ("a.bin", b"1234567", "cut short"),
        ("a.npy", b"not an array", "not a .npy array"),
        ("a.npy", npy(f"{LITERAL}({'9' * 29},)}}"), "not a .npy"),
        ("a.npy", npy(LITERAL + "(08,)}"), "not a .npy"),
        ("a.npy", npy(LITERAL + "(8,"), "not a .npy"),
        ("a.npy", npy(LITERAL + "{}}"), "not a .npy"),
        ("a.npy", npy("(" * 100 + ")" * 9), "not a .npy"),
        ("a.parquet", b"", "allowed are .npy"),
        ("a.txt.gz", b"no gzip", "cannot be read"),
        ("a.txt", b"\xff\xfe", "cannot be read"),
    ],
)
def test_refused_key_files(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    """The error names each damaged or unknown file, and the line of a text file."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(RoutingError, match=words):
        list(KeyFiles([tmp_path / name]))


def test_wrong_array_and_absent_file(tmp_path: Path) -> None:
    """Floats are not keys, and a file must exist."""
    np.save(tmp_path / "f.npy", np.ones(3))
    with pytest.raises(RoutingError, match="float64"):
        list(KeyFiles([tmp_path / "f.npy"]))
    with pytest.raises(RoutingError, match="not a file"):
        list(KeyFiles([tmp_path / "none.npy"]))
