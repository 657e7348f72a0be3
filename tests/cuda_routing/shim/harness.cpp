// The scheduler behind cuda_shim.h, and the entry that Python calls. KERNEL_FILE names the source.

#include <sched.h>

#include <memory>
#include <thread>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#include "cuda_shim.h"

#include KERNEL_FILE

#define POOL_WORDS (1 << 15)
thread_local u64 shared_pool[POOL_WORDS];

namespace shim {

thread_local Index thread_index, block_index, block_size, grid_size;

extern "C" void shim_switch(void** save, void* load);
#if defined(__x86_64__)
asm(R"(
.text
.globl shim_switch
shim_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");
#else
#error "the shim switches fibers on x86-64 only"
#endif

static const size_t STACK = 1 << 16, MOST_THREADS = 1024;

struct Fiber {
    void* stack_pointer = nullptr;
    const unsigned* waits_for = nullptr;  // runnable once *waits_for differs from waits_value
    unsigned waits_value = 0;
    bool started = false, done = false;
};

struct Warp {
    unsigned arrived = 0, mask = 0, generation = 0;
    Kind kind = BALLOT;
    unsigned long long value[32], result[32];
    int argument[32];
};

struct Block {
    void (*kernel)(const Batch);
    const Batch* batch;
    std::vector<Fiber> fibers;
    std::vector<Warp> warps;
    void* scheduler = nullptr;
    unsigned current = 0, switches = 0, at_barrier = 0, barrier_generation = 0;
    int barrier_line = 0;
};

static thread_local Block* block;

static void to_scheduler() {
    shim_switch(&block->fibers[block->current].stack_pointer, block->scheduler);
}

static void wait(const unsigned* generation) {
    Fiber& fiber = block->fibers[block->current];
    fiber.waits_for = generation;
    fiber.waits_value = *generation;
    to_scheduler();
}

void pause() {
    sched_yield();
    to_scheduler();
}

void barrier(int line) {
    if (block->at_barrier && block->barrier_line != line) fail("divergent __syncthreads");
    block->barrier_line = line;
    if (++block->at_barrier == block->fibers.size()) {
        block->at_barrier = 0;
        ++block->barrier_generation;
    } else {
        wait(&block->barrier_generation);
    }
}

static void complete(Warp& warp) {
    unsigned votes = 0;
    for (int lane = 0; lane < 32; ++lane)
        if (warp.mask >> lane & 1 && warp.value[lane]) votes |= 1u << lane;
    for (int lane = 0; lane < 32; ++lane) {
        int from = lane;
        if (warp.kind == SHUFFLE) from = warp.argument[lane] & 31;
        if (warp.kind == SHUFFLE_UP && lane >= warp.argument[lane]) from = lane - warp.argument[lane];
        if (!(warp.mask >> from & 1)) fail("shuffle from a lane outside the mask");
        warp.result[lane] = warp.kind == BALLOT ? votes : warp.value[from];
    }
    warp.arrived = 0;
    ++warp.generation;
}

unsigned long long collective(Kind kind, unsigned mask, unsigned long long value, int argument) {
    unsigned lane = thread_index.x & 31;
    Warp& warp = block->warps[thread_index.x / 32];
    if (!(mask >> lane & 1)) fail("collective by a lane outside its mask");
    if (warp.arrived && (warp.kind != kind || warp.mask != mask)) fail("divergent collective");
    warp.kind = kind;
    warp.mask = mask;
    warp.value[lane] = value;
    warp.argument[lane] = argument;
    warp.arrived |= 1u << lane;
    if (warp.arrived == mask) complete(warp);
    else wait(&warp.generation);
    return warp.result[lane];
}

static void fiber_main() {
    block->kernel(*block->batch);
    block->fibers[block->current].done = true;
    to_scheduler();
    fail("a finished thread ran again");
}

static void prepare(Fiber& fiber, char* stack) {
    void** top = (void**)((size_t)(stack + STACK) & ~(size_t)15);
    *--top = nullptr;             // keeps the stack aligned as after a call
    *--top = (void*)fiber_main;   // where the first switch returns to
    for (int i = 0; i < 6; ++i) *--top = nullptr;
    fiber.stack_pointer = top;
}

// Shared memory starts as garbage, and what lies beyond the requested size is out of bounds.
static void fence_shared(size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
    ASAN_UNPOISON_MEMORY_REGION(shared_pool, sizeof shared_pool);
    ASAN_POISON_MEMORY_REGION((char*)shared_pool + bytes, sizeof shared_pool - bytes);
#endif
    std::memset(shared_pool, 0xa5, bytes);
}

// Run one warp's threads in turn until all wait for other warps: warps that race ahead as far as
// they can are the worst case for a missing barrier. Returns how many threads finished.
static unsigned run_warp(Block& own, unsigned warp, bool reverse) {
    unsigned finished = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (unsigned i = 0; i < 32; ++i) {
            unsigned t = warp * 32 + (reverse ? 31 - i : i);
            Fiber& fiber = own.fibers[t];
            if (fiber.done || (fiber.waits_for && *fiber.waits_for == fiber.waits_value)) continue;
            moved |= fiber.waits_for != nullptr || !fiber.started;  // a thread that polls yields
            fiber.waits_for = nullptr;
            fiber.started = true;
            own.current = thread_index.x = t;
            ++own.switches;
            shim_switch(&own.scheduler, fiber.stack_pointer);
            finished += fiber.done;
        }
    }
    return finished;
}

static void run_block(void (*kernel)(const Batch), const Batch& batch, unsigned index, unsigned grid,
                      unsigned threads, unsigned shared_bytes, bool reverse) {
    Block own;
    own.kernel = kernel;
    own.batch = &batch;
    own.fibers.resize(threads);
    own.warps.resize(threads / 32);
    static thread_local std::unique_ptr<char[]> stacks(new char[MOST_THREADS * STACK]);
    for (unsigned t = 0; t < threads; ++t) prepare(own.fibers[t], &stacks[t * STACK]);
    block = &own;
    block_index.x = index;
    block_size.x = threads;
    grid_size.x = grid;
    fence_shared(shared_bytes);
    for (unsigned alive = threads; alive;) {
        unsigned before = own.switches;
        for (unsigned w = 0; w < threads / 32; ++w)
            alive -= run_warp(own, reverse ? threads / 32 - 1 - w : w, reverse);
        if (own.switches == before) fail("threads wait for others that will never come");
    }
}

}  // namespace shim

struct Named {
    const char* name;
    void (*kernel)(const Batch);
};
static const Named KERNELS[] = {
    {"count_tiles", count_tiles},
    {"scan_tiles", scan_tiles},
    {"scatter_tiles", scatter_tiles},
    {"bucketize_once", bucketize_once},
};

// Run one launch; returns 0, or 1 for an unknown kernel, or 2 where shared memory is too small.
extern "C" int shim_launch(const char* name, const Batch* batch, unsigned grid, unsigned threads,
                           unsigned shared_bytes, int cooperative, int reverse) {
    if (shared_bytes > POOL_WORDS * sizeof(u64)) return 2;
    for (const Named& named : KERNELS) {
        if (std::strcmp(named.name, name)) continue;
        if (!cooperative) {
            for (unsigned i = 0; i < grid; ++i)
                shim::run_block(named.kernel, *batch, reverse ? grid - 1 - i : i, grid, threads,
                                shared_bytes, reverse);
            return 0;
        }
        std::vector<std::thread> blocks;
        for (unsigned i = 0; i < grid; ++i)
            blocks.emplace_back(shim::run_block, named.kernel, std::cref(*batch),
                                reverse ? grid - 1 - i : i, grid, threads, shared_bytes, reverse);
        for (std::thread& one : blocks) one.join();
        return 0;
    }
    return 1;
}
