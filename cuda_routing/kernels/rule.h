// The owner of a key, and the key that it stores: one definition for nvcc, NVRTC and g++, without
// includes.
//
// Other compilers than CUDA's must define __device__, __forceinline__ and __umul64hi first.

#pragma once

typedef unsigned long long u64;
typedef unsigned int u32;

// One row of the feature table, as cuda_routing.tables.rule_table writes it.
struct Feature {
    u64 rule;         // 0 continuous, 1 roundrobin, 2 hash_roundrobin, 3 hash_independent
    u64 block;        // rows that a rank holds, 0: table size unknown
    u64 last;         // last key in range, block * ranks - 1, saturated
    u64 block_magic;  // floor((2^64 - 1) / block)
    u64 edges;        // 1 + row of the boundary table, 0: equal blocks
};

// The ranks and the constants of division by their number.
struct Ranks {
    u64 count;
    u64 mask;   // count - 1 if count is a power of two, else 0
    u64 magic;  // floor((2^64 - 1) / count)
    u64 keep;   // bits of a hash kept before the modulo: all, or 32 for dynamicemb's int32 hash
};

struct Routed {
    u32 owner;
    u64 local;
};

// MurmurHash3's finaliser: rule 2, and the bucket hash of dynamicemb's tables.
__device__ __forceinline__ u64 fmix64(u64 u) {
    u = (u ^ (u >> 33)) * 0xff51afd7ed558ccdULL;
    u = (u ^ (u >> 33)) * 0xc4ceb9fe1a85ec53ULL;
    return u ^ (u >> 33);
}

// SplitMix64's output function: rule 3.
__device__ __forceinline__ u64 splitmix64(u64 u) {
    u += 0x9e3779b97f4a7c15ULL;
    u = (u ^ (u >> 30)) * 0xbf58476d1ce4e5b9ULL;
    u = (u ^ (u >> 27)) * 0x94d049bb133111ebULL;
    return u ^ (u >> 31);
}

// u / divisor by Barrett reduction: the estimate is exact or one too small for every u.
__device__ __forceinline__ u64 quotient(u64 u, u64 divisor, u64 magic) {
    u64 q = __umul64hi(u, magic);
    return u - q * divisor >= divisor ? q + 1 : q;
}

__device__ __forceinline__ u64 modulo(u64 u, const Ranks& ranks) {
    if (ranks.mask) return u & ranks.mask;
    u64 r = u - __umul64hi(u, ranks.magic) * ranks.count;
    return r >= ranks.count ? r - ranks.count : r;
}

// Custom boundaries: the last rank whose first key is not beyond u, found by upper-bound search.
__device__ __forceinline__ Routed route_edges(u64 u, const u64* edges, const Ranks& ranks) {
    u64 low = 0, high = ranks.count + 1;
    while (low < high) {
        u64 middle = (low + high) >> 1;
        if (edges[middle] <= u) low = middle + 1;
        else high = middle;
    }
    if (low <= ranks.count) return {(u32)(low - 1), u - edges[low - 1]};
    return {(u32)modulo(u, ranks), quotient(u, ranks.count, ranks.magic)};
}

__device__ __forceinline__ Routed route_blocks(u64 u, const Feature& feature, const Ranks& ranks) {
    if (feature.block && u <= feature.last) {
        u64 owner = quotient(u, feature.block, feature.block_magic);
        return {(u32)owner, u - owner * feature.block};
    }
    return {(u32)modulo(u, ranks), quotient(u, ranks.count, ranks.magic)};
}

// Owner and local key of the unsigned key u under one feature's rule.
__device__ __forceinline__ Routed route(u64 u, const Feature& feature, const Ranks& ranks,
                                        const u64* edges) {
    if (feature.rule == 1) return {(u32)modulo(u, ranks), u};
    if (feature.rule == 2) return {(u32)modulo(fmix64(u) & ranks.keep, ranks), u};
    if (feature.rule == 3) return {(u32)__umul64hi(splitmix64(u), ranks.count), u};
    if (feature.edges) return route_edges(u, edges + (feature.edges - 1) * (ranks.count + 1), ranks);
    return route_blocks(u, feature, ranks);
}
