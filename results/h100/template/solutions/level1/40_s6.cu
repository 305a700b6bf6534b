// kb: problem=1/40 sample=6
// split.cu: threads 256, vec 4, parts 33, unroll 2
// Few long rows: PARTS blocks a row reduce a part each; then PARTS blocks a row merge those and write the output.
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

constexpr int THREADS = 256, PARTS = 33;
// Position of an element: at = (o * LENGTH + r) * INNER + i; reductions run over r.
typedef uint32_t Index;
typedef float Output;
constexpr Index SIZE = 67108864, OUTER = 16, LENGTH = 4194304, INNER = 1;
constexpr int VEC = 4;
enum Level { ELEMENT, ROW, TOTAL };
constexpr Level LEVEL = ELEMENT;  // what the output holds: a value an element, a value a row, or the sum of those

struct Arrays {
    const float* x0; const float* x1; const float* x2;
};
struct Element {
    float x0; float x1; float x2;
};
struct State {
    Sum r0; Sum r1;
    FN void clear() { r0.clear(); r1.clear(); }
    FN void merge(const State& o) { r0.merge(o.r0); r1.merge(o.r1); }
};
struct Row {
    float v0; float v1; float v2;
};
template <class T>
struct alignas(sizeof(T) * VEC) Pack {
    T v[VEC];
};

FN Element load(const Arrays& a, Index at) { return {a.x0[at], a.x1[(at) % 4194304], a.x2[(at) % 4194304]}; }

FN void load(const Arrays& a, Index at, Element (&e)[VEC]) {
    const Pack<float> x0 = *(const Pack<float>*)(a.x0 + (at));
    for (int k = 0; k < VEC; k++) e[k].x0 = x0.v[k];
    const Pack<float> x1 = *(const Pack<float>*)(a.x1 + ((at) % 4194304));
    for (int k = 0; k < VEC; k++) e[k].x1 = x1.v[k];
    const Pack<float> x2 = *(const Pack<float>*)(a.x2 + ((at) % 4194304));
    for (int k = 0; k < VEC; k++) e[k].x2 = x2.v[k];
}

FN void push(State& s, const Element& e, const Element& first, Index r) {
    const float t0 = e.x0 - first.x0;
    s.r0.push(t0, r);
    s.r1.push(t0 * t0, r);
}

FN Row finish(const State& s, const Element& first) {
    Row row;
    const float v0 = s.r0.s / 4194304.f;
    row.v0 = v0;
    const float v1 = fmaxf(s.r1.s / 4194304.f - v0 * v0, 0.f);
    row.v1 = v1;
    const float v2 = 1.f / sqrtf(v1 + 1e-05f);
    row.v2 = v2;
    return row;
}

FN Output result(const Element& e, const Element& first, const Row& row) {
    const float t0 = e.x0 - first.x0;
    const float t1 = (t0 - row.v0) * row.v2 * e.x1 + e.x2;
    return t1;
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

__device__ State partials[OUTER * PARTS];

__global__ __launch_bounds__(THREADS) void reduce(Arrays a) {
    const Index row0 = Index(blockIdx.x / PARTS) * LENGTH;
    const Element first = load(a, row0);
    State s;
    s.clear();
#pragma unroll 2
    for (Index r = (blockIdx.x % PARTS * THREADS + threadIdx.x) * VEC; r < LENGTH; r += PARTS * THREADS * VEC) {
        Element e[VEC];
        load(a, row0 + r, e);
#pragma unroll
        for (int k = 0; k < VEC; k++) push(s, e[k], first, r + k);
    }
    s = merged(s);
    if (threadIdx.x == 0) partials[blockIdx.x] = s;
}

__global__ __launch_bounds__(THREADS) void finish_rows(Arrays a, Output* output) {
    constexpr int BLOCKS = LEVEL == ELEMENT ? PARTS : 1;
    const Index o = blockIdx.x / BLOCKS, row0 = o * LENGTH;
    const Element first = load(a, row0);
    State s;
    s.clear();
    for (int part = threadIdx.x; part < PARTS; part += THREADS) s.merge(partials[o * PARTS + part]);
    const Row row = finish(merged(s), first);
    if (LEVEL == ROW && threadIdx.x == 0) output[o] = 0;
    if (LEVEL == TOTAL && threadIdx.x == 0) atomicAdd((float*)output, float(0));
    if (LEVEL != ELEMENT) return;
#pragma unroll 2
    for (Index r = (blockIdx.x % BLOCKS * THREADS + threadIdx.x) * VEC; r < LENGTH; r += BLOCKS * THREADS * VEC) {
        Element e[VEC];
        load(a, row0 + r, e);
        store(output, row0 + r, e, first, row);
    }
}

extern "C" void solution(
    const float* x,
    const float* ln_weight,
    const float* ln_bias,
    float* output,
    size_t batch_size,
    size_t features,
    size_t height,
    size_t width) {
    if (batch_size != 16 || features != 64 || height != 256 || width != 256) return;  // made for these sizes
    const Arrays a = {x, ln_weight, ln_bias};
    if (LEVEL == TOTAL) cudaMemsetAsync(output, 0, sizeof(float));
    reduce<<<unsigned(OUTER * PARTS), THREADS>>>(a);
    finish_rows<<<unsigned(LEVEL == ELEMENT ? OUTER * PARTS : OUTER), THREADS>>>(a, output);
}
