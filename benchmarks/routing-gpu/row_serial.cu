// The usual pattern, for comparison: one thread a row, walking its keys in order (roundrobin only).
// Written for this benchmark; u % ranks is a run-time 64-bit division, as where the pattern is used.

typedef unsigned long long u64;

struct Rows {
    const u64* keys;          // [count]
    const long long* starts;  // [rows + 1] first key of each row
    long long* lengths;       // [ranks * rows], zero
    const long long* places;  // [ranks * rows] first place of each (rank, row)
    long long* next;          // [ranks * rows] places, consumed
    u64* out_keys;
    long long* permute;
    long long rows;
    u64 ranks;
};

extern "C" __global__ void count_rows(const __grid_constant__ Rows r) {
    long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= r.rows) return;
    for (long long i = r.starts[row]; i < r.starts[row + 1]; ++i)
        ++r.lengths[(r.keys[i] % r.ranks) * r.rows + row];
}

extern "C" __global__ void scatter_rows(const __grid_constant__ Rows r) {
    long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= r.rows) return;
    for (long long i = r.starts[row]; i < r.starts[row + 1]; ++i) {
        u64 key = r.keys[i];
        long long place = r.next[(key % r.ranks) * r.rows + row]++;
        r.out_keys[place] = key;
        r.permute[i] = place;
    }
}
