// Bucketize: one stable multisplit of the flat key array by owner.
//
// A block takes a tile of TILE consecutive keys; a warp takes ITEMS rounds of 32 consecutive keys,
// so that the order within a warp is (round, lane). The place of a key within its warp comes from
// ballots over the bits of the owner, within its tile from per-warp histograms, and between tiles
// from a scan over tiles x ranks. Tiles are reordered in shared memory, so every rank receives
// contiguous runs.
//
// Large batches:  count_tiles, scan_tiles, scatter_tiles (offsets of the rows computed before).
// Small batches:  bucketize_once, one cooperative launch that reads the keys once.
//
// Compile with -DKEY_BITS=32|64 -DLENGTH_BITS=32|64 and optionally -DBLOCK=... -DITEMS=...

#include "rule.h"

#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef ITEMS
#define ITEMS 8
#endif
#define WARPS (BLOCK / 32)
#define TILE (BLOCK * ITEMS)
#define ALL 0xffffffffu
#define SCAN_RANKS 32  // ranks that a block of the scan serves, one per lane

#if KEY_BITS == 32
typedef u32 Key;
typedef int Index;
#else
typedef u64 Key;
typedef long long Index;
#endif
#if LENGTH_BITS == 32
typedef int Length;
typedef u32 LengthSum;
#else
typedef long long Length;
typedef u64 LengthSum;
#endif

// Every pointer and size that a launch needs. All fields have 8 bytes; cuda_routing.launch mirrors
// them.
struct Batch {
    const Key* keys;           // [count]
    const Length* lengths;     // [rows]
    long long* offsets;        // [rows + 1] first key of each row
    const long long* feature_rows;  // [features + 1] first row of each feature
    const Feature* table;      // [features]
    const u64* edges;          // [custom boundaries][ranks + 1]
    const float* weights;      // [count] or null
    Key* out_keys;             // [count]
    LengthSum* out_lengths;    // [ranks * rows], zero before the scatter
    float* out_weights;        // [count] or null
    Index* positions;          // [count] or null
    Index* permute;            // [count] or null
    u32* tile_counts;          // [tiles][ranks] keys of each rank, then those of earlier tiles
    u32* totals;               // [ranks]
    u32* chunk_sums;           // [chunks][ranks] keys of each chunk of tiles, zero before the count
    u64* block_sums;           // [tiles] bucketize_once: keys of each block's rows
    u32* barrier;              // [2] bucketize_once: arrivals and departures, both zero
    long long count;           // keys, below 2^31
    long long rows;
    long long features;
    long long tiles;
    long long chunk;           // tiles per chunk
    long long uniform;         // all features share one rule: no look-up per key
    long long bits;            // bits of the largest rank
    Ranks ranks;
};

extern __shared__ u64 shared_pool[];

// The parts of a block's shared memory; cuda_routing.launch.shared_bytes adds up the same sizes.
struct Shared {
    u64* staged;    // [TILE] keys, weights, positions or rows in output order
    u32* start;     // [ranks] first place of each rank in the tile
    u32* base;      // [ranks] place in the output of the tile's place 0, per rank (wraps)
    u32* scratch;   // [64]
    unsigned short* counts;  // [WARPS][ranks]
    unsigned short* owners;  // [TILE] owner of each staged key
};

__device__ __forceinline__ Shared split_shared(u32 ranks) {
    Shared s;
    s.staged = shared_pool;
    s.start = (u32*)(s.staged + TILE);
    s.base = s.start + ranks;
    s.scratch = s.base + ranks;
    s.counts = (unsigned short*)(s.scratch + 64);
    s.owners = s.counts + WARPS * ranks;
    return s;
}

struct Item {
    Key key;
    u32 owner;
    u32 place;  // first within the warp and owner, later within the tile
    u32 row;    // relative to the tile's first row
};

__device__ __forceinline__ u32 lane() { return threadIdx.x & 31; }
__device__ __forceinline__ u32 warp() { return threadIdx.x >> 5; }

// There are fewer than 2^31 keys, so 32-bit indices suffice.
__device__ __forceinline__ u32 key_index(u32 tile, int round) {
    return tile * TILE + warp() * (32 * ITEMS) + round * 32 + lane();
}

__device__ __forceinline__ u32 tile_end(const Batch& b, u32 tile) {
    u32 end = (tile + 1) * TILE, count = (u32)b.count;
    return end < count ? end : count;
}

__device__ __forceinline__ void load_keys(const Batch& b, u32 tile, Item* items) {
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) {
        u32 i = key_index(tile, j);
        items[j].key = i < (u32)b.count ? b.keys[i] : 0;
    }
}

__device__ __forceinline__ long long feature_start(const Batch& b, long long feature) {
    return b.offsets[b.feature_rows[feature]];
}

// The feature of key i: the last feature that starts at or before it.
__device__ __forceinline__ long long find_feature(const Batch& b, long long i) {
    long long low = 0, high = b.features - 1;
    while (low < high) {
        long long middle = (low + high + 1) >> 1;
        if (feature_start(b, middle) <= i) low = middle;
        else high = middle - 1;
    }
    return low;
}

// Owners under a rule that all features share and that keeps keys as they are.
__device__ __forceinline__ void route_alike(const Batch& b, u64 rule, Item* items) {
    if (rule == 1) {
#pragma unroll
        for (int j = 0; j < ITEMS; ++j) items[j].owner = (u32)modulo(items[j].key, b.ranks);
    } else if (rule == 2) {
#pragma unroll
        for (int j = 0; j < ITEMS; ++j)
            items[j].owner = (u32)modulo(fmix64(items[j].key) & b.ranks.keep, b.ranks);
    } else {
#pragma unroll
        for (int j = 0; j < ITEMS; ++j)
            items[j].owner = (u32)__umul64hi(splitmix64(items[j].key), b.ranks.count);
    }
}

// A call, not inlined ITEMS times, so that the general case does not fill the instruction cache.
__device__ __attribute__((noinline)) Routed route_any(u64 u, const Feature* feature, const Batch* b) {
    return route(u, *feature, b->ranks, b->edges);
}

// Owners feature by feature; keys become local keys.
__device__ __forceinline__ void route_mixed(const Batch& b, u32 tile, Item* items) {
    long long feature = 0;
    u32 next = (u32)b.count;
    if (!b.uniform && key_index(tile, 0) < (u32)b.count) {
        feature = find_feature(b, key_index(tile, 0));
        next = (u32)feature_start(b, feature + 1);
    }
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) {
        u32 i = key_index(tile, j);
        if (i >= (u32)b.count) continue;
        while (i >= next) next = (u32)feature_start(b, ++feature + 1);
        Routed routed = route_any(items[j].key, &b.table[feature], &b);
        items[j].owner = routed.owner;
        items[j].key = (Key)routed.local;
    }
}

// Owners of a thread's keys; keys become local keys, and beyond the end the owner is 0.
__device__ __forceinline__ void route_items(const Batch& b, u32 tile, Item* items) {
    u64 rule = b.uniform ? b.table[0].rule : 0;
    if (rule) route_alike(b, rule, items);
    else route_mixed(b, tile, items);
#pragma unroll
    for (int j = 0; j < ITEMS; ++j)
        if (key_index(tile, j) >= (u32)b.count) items[j].owner = 0;
}

// Lanes of the warp whose keys have the same owner; lanes beyond the end count for none.
__device__ __forceinline__ u32 find_peers(u32 owner, bool valid, int bits) {
    u32 peers = __ballot_sync(ALL, valid);
    for (int bit = 0; bit < bits; ++bit) {
        u32 mine = owner >> bit & 1;
        u32 vote = __ballot_sync(ALL, mine);
        peers &= mine ? vote : ~vote;
    }
    return peers;
}

// Stable place of each key among those of its warp and owner; s.counts becomes the warp's totals.
__device__ __forceinline__ void rank_items(const Batch& b, u32 tile, Item* items, Shared& s) {
    u32 ranks = (u32)b.ranks.count;
    for (u32 i = threadIdx.x; i < WARPS * ranks; i += BLOCK) s.counts[i] = 0;
    __syncthreads();
    unsigned short* mine = s.counts + warp() * ranks;
    u32 earlier = (1u << lane()) - 1;
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) {
        bool valid = key_index(tile, j) < (u32)b.count;
        u32 peers = find_peers(items[j].owner, valid, (int)b.bits);
        u32 before = mine[items[j].owner];
        __syncwarp();
        if (valid && !(peers & earlier)) mine[items[j].owner] = (unsigned short)(before + __popc(peers));
        __syncwarp();
        items[j].place = before + __popc(peers & earlier);
    }
    __syncthreads();
}

// s.start becomes the tile's total of each rank, s.counts the keys of earlier warps.
__device__ __forceinline__ void add_warps(u32 ranks, Shared& s) {
    for (u32 rank = threadIdx.x; rank < ranks; rank += BLOCK) {
        u32 sum = 0;
        for (u32 w = 0; w < WARPS; ++w) {
            u32 count = s.counts[w * ranks + rank];
            s.counts[w * ranks + rank] = (unsigned short)sum;
            sum += count;
        }
        s.start[rank] = sum;
    }
    __syncthreads();
}

// Exclusive sum over the threads of a block; *total receives the total.
__device__ __forceinline__ u64 block_scan(u64 value, u64* total, u64* scratch) {
    u64 inclusive = value;
    for (u32 step = 1; step < 32; step <<= 1) {
        u64 other = __shfl_up_sync(ALL, inclusive, step);
        if (lane() >= step) inclusive += other;
    }
    if (lane() == 31) scratch[warp()] = inclusive;
    __syncthreads();
    u64 before = 0, all = 0;
    for (u32 w = 0; w < WARPS; ++w) {
        if (w < warp()) before += scratch[w];
        all += scratch[w];
    }
    __syncthreads();
    *total = all;
    return before + inclusive - value;
}

// Exclusive prefix of values[0 .. n) into out, by the whole block.
__device__ __forceinline__ void scan_ranks(const u32* values, u32* out, u32 n, u64* scratch) {
    u32 each = (n + BLOCK - 1) / BLOCK, first = threadIdx.x * each;
    u64 sum = 0, total;
    for (u32 i = first; i < first + each && i < n; ++i) sum += values[i];
    u64 before = block_scan(sum, &total, scratch);
    for (u32 i = first; i < first + each && i < n; ++i) {
        u32 value = values[i];
        out[i] = (u32)before;
        before += value;
    }
    __syncthreads();
}

// s.start becomes the first place of each rank in the tile, s.base the place in the output of the
// tile's place 0; then every item gets its place in the tile.
__device__ __forceinline__ void place_items(const Batch& b, u32 tile, Item* items, Shared& s) {
    u32 ranks = (u32)b.ranks.count;
    u64* scratch = (u64*)s.scratch;
    scan_ranks(s.start, s.start, ranks, scratch);
    scan_ranks(b.totals, s.base, ranks, scratch);
    for (u32 rank = threadIdx.x; rank < ranks; rank += BLOCK)
        s.base[rank] += b.tile_counts[(u64)tile * ranks + rank] - s.start[rank];
    __syncthreads();
#pragma unroll
    for (int j = 0; j < ITEMS; ++j)
        items[j].place += s.start[items[j].owner] + s.counts[warp() * ranks + items[j].owner];
}

// The row of key i: the last row that starts at or before it. All lanes of a warp search together.
__device__ __forceinline__ long long find_row(const Batch& b, long long i) {
    long long low = 0, size = b.rows;
    while (size > 1) {
        long long step = (size + 31) / 32, at = low + lane() * step;
        u32 reached = __ballot_sync(ALL, at < low + size && b.offsets[at] <= i);
        u32 last = 31 - __clz(reached);
        long long end = low + size;
        low += last * step;
        size = end - low < step ? end - low : step;
    }
    return low;
}

// Finds the rows of a thread's keys, relative to the tile's first row; returns that row.
__device__ __forceinline__ long long find_rows(const Batch& b, u32 tile, Item* items,
                                               Shared& s) {
    u32* marks = (u32*)s.staged;
    u32 begin = tile * TILE, end = tile_end(b, tile);
    for (u32 i = threadIdx.x; i < TILE; i += BLOCK) marks[i] = 0;
    long long first = find_row(b, begin), last = find_row(b, (long long)end - 1);
    __syncthreads();
    for (long long row = first + 1 + threadIdx.x; row <= last; row += BLOCK)
        if (b.offsets[row + 1] > b.offsets[row]) marks[(u32)b.offsets[row] - begin] = (u32)(row - first);
    __syncthreads();
    u32 highest = 0;
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) {
        items[j].row = marks[key_index(tile, j) - begin];
        u32 marked = __ballot_sync(ALL, items[j].row != 0);
        u32 until = marked & (ALL >> (31 - lane()));
        u32 found = __shfl_sync(ALL, items[j].row, until ? 31 - __clz(until) : 0);
        u32 newest = __shfl_sync(ALL, items[j].row, marked ? 31 - __clz(marked) : 0);
        items[j].row = until ? found : highest;
        highest = marked ? newest : highest;
    }
    if (lane() == 0) s.scratch[warp()] = highest;
    __syncthreads();
    u32 earlier = 0;
    for (u32 w = 0; w < warp(); ++w) earlier = s.scratch[w] > earlier ? s.scratch[w] : earlier;
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) items[j].row = items[j].row ? items[j].row : earlier;
    __syncthreads();
    return first;
}

__device__ __forceinline__ void write_permute(const Batch& b, u32 tile, Item* items,
                                              Shared& s) {
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) {
        u32 i = key_index(tile, j);
        if (i < (u32)b.count) b.permute[i] = (Index)(u32)(s.base[items[j].owner] + items[j].place);
    }
}

// Copy a staged tile to its places in the output, where neighbours of one rank stay neighbours.
template <typename Value>
__device__ __forceinline__ void write_staged(const Batch& b, u32 tile, Value* out, Shared& s) {
    Value* staged = (Value*)s.staged;
    u32 size = tile_end(b, tile) - tile * TILE;
    __syncthreads();
    for (u32 at = threadIdx.x; at < size; at += BLOCK)
        out[(u32)(s.base[s.owners[at]] + at)] = staged[at];
    __syncthreads();
}

__device__ __forceinline__ void emit_keys(const Batch& b, u32 tile, Item* items, Shared& s) {
#pragma unroll
    for (int j = 0; j < ITEMS; ++j)
        if (key_index(tile, j) < (u32)b.count) {
            ((Key*)s.staged)[items[j].place] = items[j].key;
            s.owners[items[j].place] = (unsigned short)items[j].owner;
        }
    write_staged<Key>(b, tile, b.out_keys, s);
}

__device__ __forceinline__ void emit_weights(const Batch& b, u32 tile, Item* items,
                                             Shared& s) {
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) {
        u32 i = key_index(tile, j);
        if (i < (u32)b.count) ((float*)s.staged)[items[j].place] = b.weights[i];
    }
    write_staged<float>(b, tile, b.out_weights, s);
}

__device__ __forceinline__ void emit_positions(const Batch& b, u32 tile, Item* items,
                                               long long first_row, Shared& s) {
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) {
        u32 i = key_index(tile, j);
        if (i < (u32)b.count)
            ((Index*)s.staged)[items[j].place] = (Index)(i - (u32)b.offsets[first_row + items[j].row]);
    }
    write_staged<Index>(b, tile, b.positions, s);
}

// In output order the keys of one (rank, row) are neighbours: the first of a run subtracts its
// place, the last adds its place plus one. Runs that continue in another tile add up.
__device__ __forceinline__ void emit_lengths(const Batch& b, u32 tile, Item* items,
                                             long long first_row, Shared& s) {
    u32* rows = (u32*)s.staged;
    u32 size = tile_end(b, tile) - tile * TILE;
#pragma unroll
    for (int j = 0; j < ITEMS; ++j)
        if (key_index(tile, j) < (u32)b.count) rows[items[j].place] = items[j].row;
    __syncthreads();
    for (u32 at = threadIdx.x; at < size; at += BLOCK) {
        u32 owner = s.owners[at], row = rows[at];
        bool head = at == 0 || s.owners[at - 1] != owner || rows[at - 1] != row;
        bool tail = at + 1 == size || s.owners[at + 1] != owner || rows[at + 1] != row;
        if (!head && !tail) continue;
        LengthSum change = (LengthSum)((tail ? at + 1 : 0) - (long long)(head ? at : 0));
        atomicAdd(&b.out_lengths[(u64)owner * b.rows + first_row + row], change);
    }
}

__device__ __forceinline__ void emit_tile(const Batch& b, u32 tile, Item* items, Shared& s) {
    long long first_row = find_rows(b, tile, items, s);
    if (b.permute) write_permute(b, tile, items, s);
    emit_keys(b, tile, items, s);
    if (b.weights) emit_weights(b, tile, items, s);
    if (b.positions) emit_positions(b, tile, items, first_row, s);
    emit_lengths(b, tile, items, first_row, s);
}

// For tiles first .. end, replaces the number of keys of a rank by the number in all earlier tiles,
// `before` of them in tiles before `first`; one slice per warp, one rank per lane. totals are those
// of all tiles.
__device__ __forceinline__ void scan_group(const Batch& b, u32 rank, long long first, long long end,
                                           u32 before, u32 slices, u32* sums) {
    u32 ranks = (u32)b.ranks.count;
    long long each = (end - first + slices - 1) / slices, mine = first + warp() * each;
    long long last = mine + each < end ? mine + each : end;
    u32 sum = 0;
    if (rank < ranks)
        for (long long t = mine; t < last; ++t) sum += b.tile_counts[t * ranks + rank];
    sums[threadIdx.x] = sum;
    __syncthreads();
    u32 all = before;
    for (u32 slice = 0; slice < slices; ++slice) {
        u32 other = sums[slice * 32 + lane()];
        if (slice < warp()) before += other;
        all += other;
    }
    if (rank < ranks) {
        for (long long t = mine; t < last; ++t) {
            u32 count = b.tile_counts[t * ranks + rank];
            b.tile_counts[t * ranks + rank] = before;
            before += count;
        }
        if (warp() == 0 && end == b.tiles) b.totals[rank] = all;
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(BLOCK, 6) count_tiles(const __grid_constant__ Batch b) {
    u32* counts = (u32*)shared_pool;
    u32 ranks = (u32)b.ranks.count;
    u32 tile = blockIdx.x;
    Item items[ITEMS];
    load_keys(b, tile, items);
    route_items(b, tile, items);
    for (u32 rank = threadIdx.x; rank < ranks; rank += BLOCK) counts[rank] = 0;
    __syncthreads();
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) {
        bool valid = key_index(tile, j) < (u32)b.count;
        u32 peers = find_peers(items[j].owner, valid, (int)b.bits);
        if (valid && !(peers & ((1u << lane()) - 1)))
            atomicAdd(&counts[items[j].owner], (u32)__popc(peers));
    }
    __syncthreads();
    u32* chunk = b.chunk_sums + tile / b.chunk * ranks;
    for (u32 rank = threadIdx.x; rank < ranks; rank += BLOCK) {
        b.tile_counts[(u64)tile * ranks + rank] = counts[rank];
        if (counts[rank]) atomicAdd(&chunk[rank], counts[rank]);
    }
}

// A block takes SCAN_RANKS ranks of one chunk and adds up the chunks before it.
extern "C" __global__ void __launch_bounds__(1024) scan_tiles(const __grid_constant__ Batch b) {
    u32 ranks = (u32)b.ranks.count, groups = (ranks + SCAN_RANKS - 1) / SCAN_RANKS;
    u32 rank = blockIdx.x % groups * SCAN_RANKS + lane(), slices = blockDim.x / 32;
    long long chunk = blockIdx.x / groups, first = chunk * b.chunk;
    long long end = first + b.chunk < b.tiles ? first + b.chunk : b.tiles;
    u32* sums = (u32*)shared_pool;
    u32 sum = 0, before = 0;
    if (rank < ranks)
        for (long long c = warp(); c < chunk; c += slices) sum += b.chunk_sums[c * ranks + rank];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (u32 slice = 0; slice < slices; ++slice) before += sums[slice * 32 + lane()];
    __syncthreads();
    scan_group(b, rank, first, end, before, slices, sums);
}

extern "C" __global__ void __launch_bounds__(BLOCK, 4) scatter_tiles(const __grid_constant__ Batch b) {
    Shared s = split_shared((u32)b.ranks.count);
    Item items[ITEMS];
    load_keys(b, blockIdx.x, items);
    route_items(b, blockIdx.x, items);
    rank_items(b, blockIdx.x, items, s);
    add_warps((u32)b.ranks.count, s);
    place_items(b, blockIdx.x, items, s);
    emit_tile(b, blockIdx.x, items, s);
}

// Wait until every block has arrived `round` times; the whole grid must be resident.
__device__ __forceinline__ void grid_barrier(const Batch& b, u32 round) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(&b.barrier[0], 1u);
        while (*(volatile u32*)&b.barrier[0] < round * gridDim.x) __nanosleep(20);
        __threadfence();
    }
    __syncthreads();
}

// The last block to leave clears the barrier for the next launch.
__device__ __forceinline__ void leave_barrier(const Batch& b) {
    if (threadIdx.x == 0 && atomicAdd(&b.barrier[1], 1u) + 1 == gridDim.x) {
        b.barrier[0] = 0;
        b.barrier[1] = 0;
    }
}

// All blocks compute row offsets: each adds up its rows and, after a barrier, writes their prefix.
__device__ __forceinline__ void sum_rows(const Batch& b, long long first, long long last,
                                         u64* scratch) {
    u64 sum = 0, total;
    for (long long row = first + threadIdx.x; row < last; row += BLOCK) sum += b.lengths[row];
    block_scan(sum, &total, scratch);
    if (threadIdx.x == 0) b.block_sums[blockIdx.x] = total;
}

__device__ __forceinline__ void write_offsets(const Batch& b, long long first, long long last,
                                              u64* scratch) {
    u64 sum = 0, before;
    for (u32 block = threadIdx.x; block < blockIdx.x; block += BLOCK) sum += b.block_sums[block];
    block_scan(sum, &before, scratch);
    for (long long row = first; row < last; row += BLOCK) {
        u64 total, length = row + threadIdx.x < last ? b.lengths[row + threadIdx.x] : 0;
        u64 offset = before + block_scan(length, &total, scratch);
        if (row + threadIdx.x < last) b.offsets[row + threadIdx.x] = (long long)offset;
        before += total;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) b.offsets[b.rows] = b.count;
}

extern "C" __global__ void __launch_bounds__(BLOCK, 4) bucketize_once(const __grid_constant__ Batch b) {
    Shared s = split_shared((u32)b.ranks.count);
    u64* scratch = (u64*)s.scratch;
    u32 tile = blockIdx.x;
    long long groups = (b.ranks.count + SCAN_RANKS - 1) / SCAN_RANKS;
    long long each = (b.rows + gridDim.x - 1) / gridDim.x;
    long long first = tile * each < b.rows ? tile * each : b.rows;
    long long last = first + each < b.rows ? first + each : b.rows;
    Item items[ITEMS];
    load_keys(b, tile, items);
    u64 cells = b.ranks.count * b.rows;
    for (u64 i = (u64)tile * BLOCK + threadIdx.x; i < cells; i += (u64)gridDim.x * BLOCK)
        b.out_lengths[i] = 0;
    sum_rows(b, first, last, scratch);
    grid_barrier(b, 1);
    write_offsets(b, first, last, scratch);
    grid_barrier(b, 2);
    route_items(b, tile, items);
    rank_items(b, tile, items, s);
    add_warps((u32)b.ranks.count, s);
    for (u32 rank = threadIdx.x; rank < b.ranks.count; rank += BLOCK)
        b.tile_counts[(u64)tile * b.ranks.count + rank] = s.start[rank];
    grid_barrier(b, 3);
    for (long long group = tile; group < groups; group += gridDim.x)
        scan_group(b, (u32)(group * SCAN_RANKS) + lane(), 0, b.tiles, 0, WARPS, (u32*)s.staged);
    grid_barrier(b, 4);
    place_items(b, tile, items, s);
    emit_tile(b, tile, items, s);
    leave_barrier(b);
}
