// at::cpu: what the processor has.
#pragma once

#include <cstdint>

#include <unistd.h>

namespace at::cpu {

#if defined(__x86_64__)
inline bool is_avx2_supported() { return __builtin_cpu_supports("avx2"); }
inline bool is_avx512_supported() { return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"); }
inline bool is_avx512_vnni_supported() { return __builtin_cpu_supports("avx512vnni"); }
inline bool is_avx512_bf16_supported() { return __builtin_cpu_supports("avx512bf16"); }
#else
inline bool is_avx2_supported() { return false; }
inline bool is_avx512_supported() { return false; }
inline bool is_avx512_vnni_supported() { return false; }
inline bool is_avx512_bf16_supported() { return false; }
#endif
/// Tiles want the kernel's leave, which nothing here asks for.
inline bool is_amx_tile_supported() { return false; }
inline bool is_amx_fp16_supported() { return false; }
inline bool init_amx() { return false; }
inline uint32_t L1d_cache_size() { return static_cast<uint32_t>(sysconf(_SC_LEVEL1_DCACHE_SIZE)); }
inline uint32_t L2_cache_size() { return static_cast<uint32_t>(sysconf(_SC_LEVEL2_CACHE_SIZE)); }

}  // namespace at::cpu
