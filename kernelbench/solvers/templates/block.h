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
