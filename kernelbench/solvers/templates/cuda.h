#include <cstddef>
#include <cstdint>
#include <cstring>
#include <math_constants.h>

#pragma nv_diag_suppress 128, 177  // one template serves many formulas, and none needs all of it

#define FN __device__ __forceinline__
#define INFINITE CUDART_INF_F
typedef float Accumulator;
