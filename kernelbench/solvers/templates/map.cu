// Elementwise: ITEMS vectors a thread, all loaded before the first is computed.
$header
constexpr int THREADS = $threads, ITEMS = $items;
$formula
$store
__global__ __launch_bounds__(THREADS) void map(Arrays a, Output* output) {
    Index begin = Index(blockIdx.x) * (THREADS * ITEMS) + threadIdx.x;
    Element e[ITEMS][VEC];
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        Index at = (begin + k * THREADS) * VEC;
        if (at < SIZE) load(a, at, e[k]);
    }
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        Index at = (begin + k * THREADS) * VEC;
        if (at < SIZE) store(output, at, e[k], e[k][0], Row());
    }
}

$declaration {
$guard
    constexpr Index EACH = THREADS * ITEMS * VEC;
    map<<<unsigned((SIZE + EACH - 1) / EACH), THREADS>>>({$arguments}, output);
}
