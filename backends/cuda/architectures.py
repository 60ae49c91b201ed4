"""Architectures of NVIDIA's GPUs: which PTX each reads, what it has, and what a multiprocessor holds.

In: the name of an architecture, such as "sm_90", or a compute capability. Out: facts. No compiler is loaded.
"""

from __future__ import annotations

from typing import NamedTuple

from jitcore.backends.gpu.tuning import Tuning


class Architecture(NamedTuple):
    """ptx: the oldest version of PTX that has the instructions, so that old drivers read it. shared_kib,
    threads: of a multiprocessor. has_tensor_cores: those of `render.tensor_cores`. features: see
    `RenderOptions`; sm_80 brought extremes of which NaN is the most extreme."""

    ptx: int
    shared_kib: int
    threads: int
    has_tensor_cores: bool = True
    tuning: Tuning = Tuning()
    features: tuple[str, ...] = ("sm_80",)


ARCHITECTURES = {
    "sm_75": Architecture(63, 64, 1024, False, Tuning(digit_key_blocks=2), ()),
    "sm_80": Architecture(70, 164, 2048),
    "sm_86": Architecture(71, 100, 1536),
    "sm_87": Architecture(74, 164, 1536),
    "sm_89": Architecture(78, 100, 1536),
    "sm_90": Architecture(78, 228, 2048),
    "sm_100": Architecture(86, 228, 2048),
    "sm_103": Architecture(88, 228, 2048),
    "sm_120": Architecture(87, 100, 1536),
    "sm_121": Architecture(88, 100, 2048),
}
#: The compute capability that no older GPU has.
OLDEST = 7, 5
#: Registers, and blocks, of a multiprocessor.
_REGISTERS, _BLOCKS = 65536, 32


def choose_arch(major: int, minor: int) -> str:
    """The newest architecture whose PTX runs on a GPU of this compute capability.

    Raises: RuntimeError for one that is too old."""
    if (major, minor) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise RuntimeError(f"a GPU of compute capability {major}.{minor} is too old: programs are compiled "
                           f"for {oldest} and later")
    return [arch for arch in ARCHITECTURES if int(arch.removeprefix("sm_")) <= 10 * major + minor][-1]


def find_oldest_cuda(arch: str) -> tuple[int, int]:
    """The first version of CUDA whose drivers read the PTX of an architecture."""
    major, minor = divmod(ARCHITECTURES[arch].ptx, 10)
    if major == 6:
        return 10, minor - 3
    return major + 4, minor + (major == 8 and minor > 5)  # 8.5 is that of two versions


def find_occupancy(arch: str, block: int, registers: int, shared: int) -> float:
    """The share of the threads of a multiprocessor that blocks of so many fill. registers: of a thread;
    shared: bytes of a block."""
    facts, warps = ARCHITECTURES[arch], -(-block // 32)
    of_warp = -(-registers * 32 // 256) * 256  # registers are given out in pieces
    limits = [facts.threads // (32 * warps), _REGISTERS // max(of_warp * warps, 1), _BLOCKS]
    limits += [facts.shared_kib * 1024 // (shared + 1024)]
    return min(limits) * 32 * warps / facts.threads
