"""Interrupted and truncated saves are detected, whichever file is affected."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_routing.checkpoints import inspect
from cuda_routing.checkpoints.layout import KINDS, data_path, manifest_path, meta_path
from cuda_routing.errors import CheckpointError
from cuda_routing.rules import Rule
from tests.cuda_routing.checkpoints.tables import save_table, some_keys


@pytest.fixture()
def saved(tmp_path: Path) -> Path:
    """A whole checkpoint of three ranks."""
    save_table(tmp_path, some_keys(90), 3, Rule.ROUNDROBIN)
    return tmp_path


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("manifest", [True, False])
def test_truncated_file(saved: Path, kind: str, manifest: bool) -> None:
    """A file that lacks its last byte is named, with and without a manifest."""
    if not manifest:
        forget_manifests(saved)
    path = data_path(saved, "t", kind, 1, 3)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=f"{kind}.rank_1"):
        inspect(saved, "t")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("manifest", [True, False])
def test_missing_file(saved: Path, kind: str, manifest: bool) -> None:
    """A missing file is noticed, with and without a manifest."""
    if not manifest:
        forget_manifests(saved)
    data_path(saved, "t", kind, 2, 3).unlink()
    with pytest.raises(CheckpointError, match=kind):
        inspect(saved, "t")


@pytest.mark.parametrize("kind", ["values", "keys"])
def test_whole_rows_missing_without_manifest(saved: Path, kind: str) -> None:
    """If whole rows of one file are lost, it disagrees with the others."""
    forget_manifests(saved)
    path = data_path(saved, "t", kind, 0, 3)
    path.write_bytes(path.read_bytes()[: 12 * 8])
    with pytest.raises(CheckpointError, match="cut short"):
        inspect(saved, "t")


def test_missing_manifest(saved: Path) -> None:
    """A rank that wrote its data but not its manifest did not finish."""
    manifest_path(saved, "t", 1, 3).unlink()
    with pytest.raises(CheckpointError, match="rank 1 did not finish"):
        inspect(saved, "t")


def test_mixed_saves(tmp_path: Path) -> None:
    """Files of two saves in one folder are told apart by their tags."""
    save_table(tmp_path, some_keys(30), 2, Rule.ROUNDROBIN, tag="step-1")
    old = manifest_path(tmp_path, "t", 1, 2).read_text()
    save_table(tmp_path, some_keys(30), 2, Rule.ROUNDROBIN, tag="step-2")
    manifest_path(tmp_path, "t", 1, 2).write_text(old)
    with pytest.raises(CheckpointError, match=r"'step-1'.*'step-2'"):
        inspect(tmp_path, "t")


def forget_manifests(folder: Path) -> None:
    """Make the folder look like a checkpoint of dynamicemb's."""
    for path in folder.glob("*_manifest.*"):
        path.unlink()
    meta_path(folder, "t").write_text('{"dist_type": "roundrobin"}')
