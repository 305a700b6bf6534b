FN void store(Output* output, Index at, const Element (&e)[VEC], const Element& first, const Row& row) {
    Pack<Output> pack;
#pragma unroll
    for (int k = 0; k < VEC; k++) pack.v[k] = result(e[k], first, row);
    *(Pack<Output>*)(output + at) = pack;
}
