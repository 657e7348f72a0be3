// What the kernel file needs of CUDA, on a CPU: force-included before it.
//
// A thread is a fiber, a block an OS thread (so __shared__ is thread_local), a warp 32 fibers that
// meet in collectives. A collective or barrier that not everybody reaches aborts with a message.

#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>

#define __global__
#define __device__
#define __forceinline__ inline
#define __grid_constant__
#define __shared__ thread_local
#define __launch_bounds__(...)

namespace shim {

struct Index {
    unsigned x;
};

extern thread_local Index thread_index, block_index, block_size, grid_size;

enum Kind { BALLOT = 1, SHUFFLE, SHUFFLE_UP, SYNC_WARP };

unsigned long long collective(Kind kind, unsigned mask, unsigned long long value, int argument);
void barrier(int line);
void pause();

[[noreturn]] inline void fail(const char* what) {
    std::fprintf(stderr, "shim: %s (block %u, thread %u)\n", what, block_index.x, thread_index.x);
    std::abort();
}

}  // namespace shim

#define threadIdx shim::thread_index
#define blockIdx shim::block_index
#define blockDim shim::block_size
#define gridDim shim::grid_size

#define __syncthreads() shim::barrier(__LINE__)
#define __syncwarp() ((void)shim::collective(shim::SYNC_WARP, 0xffffffffu, 0, 0))
#define __ballot_sync(mask, vote) \
    ((unsigned)shim::collective(shim::BALLOT, mask, (vote) ? 1 : 0, 0))
#define __threadfence() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define __nanosleep(time) shim::pause()

template <typename T>
inline T __shfl_sync(unsigned mask, T value, int from) {
    return (T)shim::collective(shim::SHUFFLE, mask, (unsigned long long)value, from);
}
template <typename T>
inline T __shfl_up_sync(unsigned mask, T value, int step) {
    return (T)shim::collective(shim::SHUFFLE_UP, mask, (unsigned long long)value, step);
}
template <typename T>
inline T atomicAdd(T* where, T value) {
    return __atomic_fetch_add(where, value, __ATOMIC_SEQ_CST);
}

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
