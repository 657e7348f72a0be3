"""Run-time compilation of the shipped source, for the architectures we name."""

from pathlib import Path

import pytest

from cuda_routing import nvrtc
from cuda_routing.errors import BackendUnavailable
from cuda_routing.launch import Geometry
from cuda_routing.nvrtc import Nvrtc, cache_folder, compile_kernels

KERNEL_NAMES = (b"count_tiles", b"scan_tiles", b"scatter_tiles", b"bucketize_once")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep compiled kernels of tests out of the user's cache."""
    monkeypatch.setenv(nvrtc.CACHE_VARIABLE, str(tmp_path))


@pytest.fixture()
def compiler() -> Nvrtc:
    """NVRTC; without it the test is skipped visibly."""
    try:
        return Nvrtc.load()
    except BackendUnavailable as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
def test_ships_for_three_architectures(compiler: Nvrtc, arch: str) -> None:
    """The shipped geometry compiles to an ELF that holds every kernel."""
    code = compile_kernels(arch, 64, 64)
    assert code[:4] == b"\x7fELF"
    assert all(name in code for name in KERNEL_NAMES)


@pytest.mark.parametrize(("key_bits", "length_bits"), [(32, 32), (32, 64), (64, 32)])
def test_other_types_compile(compiler: Nvrtc, key_bits: int, length_bits: int) -> None:
    """Every combination of key and length type compiles."""
    assert compile_kernels("sm_90", key_bits, length_bits, Geometry(64, 2))[:4] == b"\x7fELF"


def test_cache_answers_the_second_time(
    compiler: Nvrtc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second call reads the cubin from the cache; another option compiles again."""
    first = compile_kernels("sm_80", 64, 64, Geometry(64, 2))
    assert len(list(tmp_path.glob("*.cubin"))) == 1
    monkeypatch.setattr(Nvrtc, "compile", lambda *a: pytest.fail("compiled again"))
    assert compile_kernels("sm_80", 64, 64, Geometry(64, 2)) == first
    with pytest.raises(pytest.fail.Exception):
        compile_kernels("sm_80", 64, 64, Geometry(64, 4))


def test_refusals_carry_the_log(compiler: Nvrtc) -> None:
    """The error for a source that does not compile quotes the compiler."""
    with pytest.raises(BackendUnavailable, match="undefined_name"):
        compiler.compile("int f() { return undefined_name; }", {}, ("-arch=sm_80",))


def test_absent_nvrtc_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the library, the error says what to install."""
    monkeypatch.setattr(nvrtc, "_candidates", list)
    monkeypatch.setattr(nvrtc.ctypes.util, "find_library", lambda name: None)
    Nvrtc.load.cache_clear()
    try:
        with pytest.raises(BackendUnavailable, match="pip install"):
            Nvrtc.load()
    finally:
        Nvrtc.load.cache_clear()


def test_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our variable comes first, then XDG_CACHE_HOME."""
    monkeypatch.setenv(nvrtc.CACHE_VARIABLE, "/a")
    assert cache_folder() == Path("/a")
    monkeypatch.delenv(nvrtc.CACHE_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", "/b")
    assert cache_folder() == Path("/b/cuda_routing")
