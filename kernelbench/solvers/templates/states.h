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
