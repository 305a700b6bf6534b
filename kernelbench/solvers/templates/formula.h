// Position of an element: at = (o * LENGTH + r) * INNER + i; reductions run over r.
typedef $index Index;
typedef $output_type Output;
constexpr Index SIZE = $size, OUTER = $outer, LENGTH = $length, INNER = $inner;
constexpr int VEC = $vec;
enum Level { ELEMENT, ROW, TOTAL };
constexpr Level LEVEL = $level;  // what the output holds: a value an element, a value a row, or the sum of those

struct Arrays {
    $array_fields
};
struct Element {
    $element_fields
};
struct State {
    $state_fields
    FN void clear() { $clear }
    FN void merge(const State& o) { $merge }
};
struct Row {
    $row_fields
};
template <class T>
struct alignas(sizeof(T) * VEC) Pack {
    T v[VEC];
};

FN Element load(const Arrays& a, Index at) { return {$load}; }

FN void load(const Arrays& a, Index at, Element (&e)[VEC]) {
$load_vector
}

FN void push(State& s, const Element& e, const Element& first, Index r) {
$push
}

FN Row finish(const State& s, const Element& first) {
    Row row;
$finish
    return row;
}

FN Output result(const Element& e, const Element& first, const Row& row) {
$result
}
