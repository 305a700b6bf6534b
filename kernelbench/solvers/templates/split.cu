// Few long rows: PARTS blocks a row reduce a part each; then PARTS blocks a row merge those and write the output.
$header
constexpr int THREADS = $threads, PARTS = $parts;
$formula
$block
$store
__device__ State partials[OUTER * PARTS];

__global__ __launch_bounds__(THREADS) void reduce(Arrays a) {
    const Index row0 = Index(blockIdx.x / PARTS) * LENGTH;
    const Element first = load(a, row0);
    State s;
    s.clear();
#pragma unroll $unroll
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
    if (LEVEL == ROW && threadIdx.x == 0) output[o] = $row_output;
    if (LEVEL == TOTAL && threadIdx.x == 0) atomicAdd((float*)output, float($row_output));
    if (LEVEL != ELEMENT) return;
#pragma unroll $unroll
    for (Index r = (blockIdx.x % BLOCKS * THREADS + threadIdx.x) * VEC; r < LENGTH; r += BLOCKS * THREADS * VEC) {
        Element e[VEC];
        load(a, row0 + r, e);
        store(output, row0 + r, e, first, row);
    }
}

$declaration {
$guard
    const Arrays a = {$arguments};
    if (LEVEL == TOTAL) cudaMemsetAsync(output, 0, sizeof(float));
    reduce<<<unsigned(OUTER * PARTS), THREADS>>>(a);
    finish_rows<<<unsigned(LEVEL == ELEMENT ? OUTER * PARTS : OUTER), THREADS>>>(a, output);
}
