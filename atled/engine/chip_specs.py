"""Chips to compile for: their memory, and the properties that the GPU compiler needs."""

from __future__ import annotations

from typing import NamedTuple


class Gpu(NamedTuple):
    """A GPU, described by the numbers of its data sheet."""

    title: str
    capability: tuple[int, int]
    cores: int  # streaming multiprocessors
    lanes: int  # 32-bit float units per core
    shared: int  # shared memory per core, in bytes
    cache: int  # L2 cache, in bytes
    clock: float  # GHz
    bandwidth: float  # memory bandwidth, in bytes per second
    memory: int  # in bytes
    is_extended: bool = False  # has instructions specific to this generation

    @property
    def description(self) -> str:
        """The description in the compiler's text format."""
        major, minor = self.capability
        extension = "ACCELERATED_FEATURES" if self.is_extended else "NONE"
        return f"""gpu_device_info {{
            threads_per_block_limit: 1024 threads_per_warp: 32 threads_per_core_limit: 2048
            block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
            registers_per_core_limit: 65536 registers_per_block_limit: 65536
            shared_memory_per_block: 49152 shared_memory_per_core: {self.shared}
            shared_memory_per_block_optin: {self.shared - 1024}
            core_count: {self.cores} fpus_per_core: {self.lanes} l2_cache_size: {self.cache}
            clock_rate_ghz: {self.clock} memory_bandwidth: {int(self.bandwidth)} device_memory_size: {self.memory}
            cuda_compute_capability {{ major: {major} minor: {minor} feature_extension: {extension} }}
        }}
        platform_name: "CUDA"
        dnn_version_info {{ major: 9 minor: 10 patch: 0 }}
        device_description_str: "NVIDIA {self.title}" """


_KB, _MB = 1 << 10, 1 << 20
GPUS = {
    "a100": Gpu("A100-SXM4-80GB", (8, 0), 108, 64, 164 * _KB, 40 * _MB, 1.41, 2.039e12, 85_100_068_864),
    "a100-40": Gpu("A100-SXM4-40GB", (8, 0), 108, 64, 164 * _KB, 40 * _MB, 1.41, 1.555e12, 42_331_013_120),
    "h100": Gpu("H100 80GB HBM3", (9, 0), 132, 128, 228 * _KB, 50 * _MB, 1.98, 3.352e12, 84_942_979_072, True),
    "h200": Gpu("H200", (9, 0), 132, 128, 228 * _KB, 50 * _MB, 1.98, 4.8e12, 151_397_597_184, True),
    "b200": Gpu("B200", (10, 0), 148, 128, 228 * _KB, 126 * _MB, 1.965, 7.672e12, 191_514_411_008, True),
    "gb200": Gpu("GB200", (10, 0), 152, 128, 228 * _KB, 129 * _MB, 2.062, 7.928e12, 197_897_748_480, True),
}

# Memory per device that the compiler assumes: on v2, v3, v4 and tpu7x a chip is two devices.
TPUS = {
    name: int(gib * 2**30)
    for name, gib in {
        "v2": 7.48, "v3": 15.48, "v4": 15.25, "v5e": 15.75, "v5p": 95.74, "v6e": 31.25, "tpu7x": 94.75,
    }.items()
}  # fmt: skip
