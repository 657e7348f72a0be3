"""Compile the kernels at run time with NVRTC, which needs neither nvcc nor a GPU."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import hashlib
import importlib.util
import os
import re
import tempfile
from pathlib import Path

from cuda_routing.errors import BackendUnavailable
from cuda_routing.launch import Geometry

KERNELS = Path(__file__).parent / "kernels"
CACHE_VARIABLE = "CUDA_ROUTING_CACHE"


def compile_kernels(
    arch: str, key_bits: int, length_bits: int, geometry: Geometry | None = None
) -> bytes:
    """Machine code (cubin) of all kernels for one GPU architecture and choice of types.

    Parameters
    ----------
    arch : str
        Such as ``sm_90``.
    key_bits, length_bits : int
        32 or 64.
    geometry : Geometry, optional
        Threads per block and keys per thread.

    Returns
    -------
    bytes
        From the cache if source, options and NVRTC version are the same.

    Raises
    ------
    BackendUnavailable
        NVRTC is not installed, or does not know the architecture.
    """
    shape = geometry or Geometry()
    options = (
        f"--gpu-architecture={arch}", "--std=c++17", f"-DKEY_BITS={key_bits}",
        f"-DLENGTH_BITS={length_bits}", f"-DBLOCK={shape.block}", f"-DITEMS={shape.items}",
    )  # fmt: skip
    sources = (read_source("bucketize.cu"), read_source("rule.h"))
    compiler = Nvrtc.load()
    identity = repr((sources, options, compiler.version)).encode()
    cached = cache_folder() / f"{arch}-{hashlib.sha256(identity).hexdigest()[:24]}.cubin"
    if cached.is_file():
        return cached.read_bytes()
    code = compiler.compile(sources[0], {"rule.h": sources[1]}, options)
    _store(cached, code)
    return code


def read_source(name: str) -> str:
    """Return the text of a kernel file."""
    return (KERNELS / name).read_text(encoding="utf-8")


def cache_folder() -> Path:
    """Folder of compiled kernels: $CUDA_ROUTING_CACHE, or one in the user's cache folder."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "cuda_routing"


def _store(path: Path, code: bytes) -> None:
    """Write under a temporary name, then rename; failing to write the cache is not an error."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(code)
        Path(file.name).replace(path)
    except OSError:
        return


class Nvrtc:
    """The NVRTC library, through ctypes."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._check(library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)), None)
        self.version = (major.value, minor.value)

    @classmethod
    @functools.cache
    def load(cls) -> Nvrtc:
        """Find and open NVRTC: the pip package first, then the system's.

        Raises
        ------
        BackendUnavailable
            There is none.
        """
        for path in _candidates():
            try:
                for helper in sorted(path.parent.glob("libnvrtc-builtins.so*")):
                    ctypes.CDLL(str(helper), mode=ctypes.RTLD_GLOBAL)
                return cls(ctypes.CDLL(str(path)))
            except OSError:
                continue
        name = ctypes.util.find_library("nvrtc")
        if name:
            return cls(ctypes.CDLL(name))
        raise BackendUnavailable(
            "the CUDA kernels need NVRTC to compile: pip install 'milp-planner[cuda]'"
        )

    def compile(self, source: str, headers: dict[str, str], options: tuple[str, ...]) -> bytes:
        """Cubin of a source whose includes are given by name.

        Raises
        ------
        BackendUnavailable
            The compiler refused; the message contains its log.
        """
        program = ctypes.c_void_p()
        names = (ctypes.c_char_p * len(headers))(*(name.encode() for name in headers))
        texts = (ctypes.c_char_p * len(headers))(*(text.encode() for text in headers.values()))
        status = self.library.nvrtcCreateProgram(
            ctypes.byref(program), source.encode(), b"bucketize.cu", len(headers), texts, names
        )
        self._check(status, None)
        try:
            flags = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
            self._check(self.library.nvrtcCompileProgram(program, len(options), flags), program)
            return self._read(program, "CUBIN")
        finally:
            self.library.nvrtcDestroyProgram(ctypes.byref(program))

    def _read(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._check(getattr(self.library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)), None)
        buffer = ctypes.create_string_buffer(size.value)
        self._check(getattr(self.library, f"nvrtcGet{what}")(program, buffer), None)
        return buffer.raw

    def _check(self, status: int, program: ctypes.c_void_p | None) -> None:
        if status == 0:
            return
        reason = self.library.nvrtcGetErrorString(status).decode()
        log = ""
        if program is not None:
            log = self._read(program, "ProgramLog").decode(errors="replace").strip("\0\n ")
        raise BackendUnavailable(f"NVRTC could not compile the kernels: {reason}. {log}".rstrip())


def _candidates() -> list[Path]:
    """Return NVRTC libraries of installed pip packages, the newest CUDA first."""
    spec = importlib.util.find_spec("nvidia")
    folders = list(spec.submodule_search_locations or []) if spec else []
    found = [path for folder in folders for path in Path(folder).glob("*/lib/libnvrtc.so.*")]
    return sorted(found, key=lambda path: _numbers(path.name), reverse=True)


def _numbers(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", name))
