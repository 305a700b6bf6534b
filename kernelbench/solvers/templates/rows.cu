// Reductions over what is contiguous in memory: a block a row. With CACHE the row stays in registers between
// the reduction and the output, else it is read again.
$header
constexpr int THREADS = $threads;
#define CACHE $cache
$formula
$block
$store
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
#pragma unroll $unroll
    for (Index r = threadIdx.x * VEC; r < LENGTH; r += THREADS * VEC) {
        Element e[VEC];
        load(a, row0 + r, e);
#pragma unroll
        for (int k = 0; k < VEC; k++) push(s, e[k], first, r + k);
    }
#endif
    const Row row = finish(merged(s), first);
    if (LEVEL == ROW && threadIdx.x == 0) output[blockIdx.x] = $row_output;
    if (LEVEL == TOTAL && threadIdx.x == 0) atomicAdd((float*)output, float($row_output));
    if (LEVEL != ELEMENT) return;
#if CACHE
#pragma unroll
    for (int n = 0; n < KEPT; n++) {
        Index r = (n * THREADS + threadIdx.x) * VEC;
        if (r < LENGTH) store(output, row0 + r, kept[n], first, row);
    }
#else
#pragma unroll $unroll
    for (Index r = threadIdx.x * VEC; r < LENGTH; r += THREADS * VEC) {
        Element e[VEC];
        load(a, row0 + r, e);
        store(output, row0 + r, e, first, row);
    }
#endif
}

$declaration {
$guard
    if (LEVEL == TOTAL) cudaMemsetAsync(output, 0, sizeof(float));
    rows<<<unsigned(OUTER), THREADS>>>({$arguments}, output);
}
