// The formula in loops: elements in parallel, or CHUNKS of the rows; TILE neighbouring columns at a time.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#define FN inline
#define INFINITE INFINITY
typedef double Accumulator;
$states
$formula
constexpr Index TILE = INNER < $tile ? INNER : $tile, TILES = (INNER + TILE - 1) / TILE, CHUNKS = $chunks;

static void rows(const Arrays& a, Output* output) {
    double total = 0;
#pragma omp parallel for collapse(2) reduction(+ : total) if (CHUNKS == 1)
    for (Index o = 0; o < OUTER; o++)
        for (Index tile = 0; tile < TILES; tile++) {
            const Index i0 = tile * TILE, width = std::min(TILE, INNER - i0), column0 = o * LENGTH * INNER + i0;
            std::vector<State> states(CHUNKS * width);
            for (State& s : states) s.clear();
#pragma omp parallel for if (CHUNKS > 1)
            for (Index chunk = 0; chunk < CHUNKS; chunk++)
                for (Index r = LENGTH * chunk / CHUNKS; r < LENGTH * (chunk + 1) / CHUNKS; r++)
                    for (Index i = 0; i < width; i++)
                        push(states[chunk * width + i], load(a, column0 + r * INNER + i), load(a, column0 + i), r);
            for (Index chunk = 1; chunk < CHUNKS; chunk++)
                for (Index i = 0; i < width; i++) states[i].merge(states[chunk * width + i]);
            for (Index i = 0; i < width; i++) {
                const Element first = load(a, column0 + i);
                const Row row = finish(states[i], first);
                if (LEVEL == ROW) output[o * INNER + i0 + i] = $row_output;
                if (LEVEL == TOTAL) total += $row_output;
                if (LEVEL != ELEMENT) continue;
                for (Index r = 0; r < LENGTH; r++) {
                    const Index at = column0 + r * INNER + i;
                    output[at] = result(load(a, at), first, row);
                }
            }
        }
    if (LEVEL == TOTAL) output[0] = Output(total);
}

static void map(const Arrays& a, Output* output) {
#pragma omp parallel for simd
    for (Index at = 0; at < SIZE; at++) {
        const Element e = load(a, at);
        output[at] = result(e, e, Row());
    }
}

$declaration {
$guard
    $loop({$arguments}, output);
}
