// CUDA on a CPU, as far as the templates use it: blocks one after the other, the threads of a block as fibers
// that change over at barriers. A launch is written emulate(grid, block, [&] { kernel(...); }).
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(threads)
#define CUDART_INF_F INFINITY

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
static dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace emulation {
constexpr size_t STACK = 128 << 10, MOST = 1024;
static ucontext_t scheduler, fibers[MOST];
static std::vector<char> stacks(STACK * MOST);
static bool ended[MOST];
static int exchanged[MOST];
static unsigned current;
static const std::function<void()>* kernel;

static void fiber() {
    (*kernel)();
    ended[current] = true;
    swapcontext(&fibers[current], &scheduler);
}

static void block(unsigned threads) {
    for (unsigned t = 0; t < threads; t++) {
        getcontext(&fibers[t]);
        fibers[t].uc_stack.ss_sp = stacks.data() + t * STACK;
        fibers[t].uc_stack.ss_size = STACK;
        fibers[t].uc_link = nullptr;
        makecontext(&fibers[t], fiber, 0);
        ended[t] = false;
    }
    for (bool left = true; left;) {
        left = false;
        for (unsigned t = 0; t < threads; t++)
            if (!ended[t]) {
                current = t, threadIdx = dim3(t, 0, 0);
                swapcontext(&scheduler, &fibers[t]);
                left |= !ended[t];
            }
    }
}
}  // namespace emulation

static void __syncthreads() { swapcontext(&emulation::fibers[emulation::current], &emulation::scheduler); }

static int __shfl_xor_sync(unsigned, int value, int lane) {  // all threads of the block take part
    unsigned self = emulation::current;
    emulation::exchanged[self] = value;
    __syncthreads();
    int other = emulation::exchanged[self ^ lane];
    __syncthreads();
    return other;
}

struct alignas(16) float4 {
    float x, y, z, w;
};
static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
using std::min;

static void atomicAdd(float* at, float value) { *at += value; }
static void cudaMemsetAsync(void* at, int value, size_t bytes) { memset(at, value, bytes); }

static void emulate(dim3 grid, dim3 threads, const std::function<void()>& kernel) {
    gridDim = grid, blockDim = threads, emulation::kernel = &kernel;
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) {
                blockIdx = dim3(x, y, z);
                emulation::block(threads.x);
            }
}
