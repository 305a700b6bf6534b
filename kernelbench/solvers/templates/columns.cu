// Reductions over a dimension that is not the last: neighbouring threads take neighbouring columns, WIDE of them
// a block, and HIGH threads share a column. With CACHE it stays in registers until the output.
$header
constexpr int WIDE = $wide, HIGH = $high;
#define CACHE $cache
$formula
constexpr Index TILES = (INNER + WIDE - 1) / WIDE;

__global__ __launch_bounds__(WIDE * HIGH) void columns(Arrays a, Output* output) {
    __shared__ State states[HIGH][WIDE];
    const int x = threadIdx.x % WIDE, y = threadIdx.x / WIDE;
    const Index o = blockIdx.x / TILES, i = blockIdx.x % TILES * WIDE + x;
    const bool active = i < INNER;
    const Index column0 = o * LENGTH * INNER + (active ? i : 0);
    const Element first = load(a, column0);
    State s;
    s.clear();
#if CACHE
    constexpr int KEPT = (LENGTH + HIGH - 1) / HIGH;
    Element kept[KEPT];
#pragma unroll
    for (int n = 0; n < KEPT; n++) {
        Index r = n * HIGH + y;
        if (r < LENGTH) kept[n] = load(a, column0 + r * INNER);
    }
#pragma unroll
    for (int n = 0; n < KEPT; n++) {
        Index r = n * HIGH + y;
        if (r < LENGTH) push(s, kept[n], first, r);
    }
#else
#pragma unroll $unroll
    for (Index r = y; r < LENGTH; r += HIGH) push(s, load(a, column0 + r * INNER), first, r);
#endif
    states[y][x] = s;
    __syncthreads();
    s = states[0][x];
    for (int other = 1; other < HIGH; other++) s.merge(states[other][x]);
    const Row row = finish(s, first);
    if (LEVEL == ROW && active && y == 0) output[o * INNER + i] = $row_output;
    if (LEVEL == TOTAL && active && y == 0) atomicAdd((float*)output, float($row_output));
    if (LEVEL != ELEMENT || !active) return;
#if CACHE
#pragma unroll
    for (int n = 0; n < KEPT; n++) {
        Index r = n * HIGH + y;
        if (r < LENGTH) output[column0 + r * INNER] = result(kept[n], first, row);
    }
#else
#pragma unroll $unroll
    for (Index r = y; r < LENGTH; r += HIGH)
        output[column0 + r * INNER] = result(load(a, column0 + r * INNER), first, row);
#endif
}

$declaration {
$guard
    if (LEVEL == TOTAL) cudaMemsetAsync(output, 0, sizeof(float));
    columns<<<unsigned(OUTER * TILES), WIDE * HIGH>>>({$arguments}, output);
}
