// The formula in loops: elements in parallel, GRAIN of them to a thread of TEAM; or CHUNKS of the rows, each in LANES
// interleaved sums, TILE neighbouring columns at a time. TEAM 0 is every core, GRAIN 0 one share for each.
#include <omp.h>

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
constexpr Index LANES = $lanes, GRAIN = $grain;
constexpr int TEAM = $team;

static int team() { return TEAM ? TEAM : omp_get_max_threads(); }

static void rows(const Arrays& a, Output* output) {
    double total = 0;
#pragma omp parallel for collapse(2) reduction(+ : total) num_threads(team()) if (CHUNKS == 1)
    for (Index o = 0; o < OUTER; o++)
        for (Index tile = 0; tile < TILES; tile++) {
            const Index i0 = tile * TILE, width = std::min(TILE, INNER - i0), column0 = o * LENGTH * INNER + i0;
            std::vector<State> states(CHUNKS * LANES * width);
            for (State& s : states) s.clear();
#pragma omp parallel for num_threads(team()) if (CHUNKS > 1)
            for (Index chunk = 0; chunk < CHUNKS; chunk++) {
                State* own = states.data() + chunk * LANES * width;
#pragma GCC unroll $unroll
                for (Index r = LENGTH * chunk / CHUNKS; r < LENGTH * (chunk + 1) / CHUNKS; r++)
                    for (Index i = 0; i < width; i++)
                        push(own[r % LANES * width + i], load(a, column0 + r * INNER + i), load(a, column0 + i), r);
            }
            for (Index part = 1; part < CHUNKS * LANES; part++)
                for (Index i = 0; i < width; i++) states[i].merge(states[part * width + i]);
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
    const Index share = GRAIN ? GRAIN : (SIZE + team() - 1) / team();
#pragma omp parallel for simd simdlen($lanes) schedule(static, share) num_threads(team())
    for (Index at = 0; at < SIZE; at++) {
        const Element e = load(a, at);
        output[at] = result(e, e, Row());
    }
}

$declaration {
$guard
    $loop({$arguments}, output);
}
