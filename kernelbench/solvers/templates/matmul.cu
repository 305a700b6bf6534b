// Matrix product of FP32 on the ordinary cores: a block computes HIGH x WIDE results from strips of DEPTH in shared
// memory, a thread ROWS x COLUMNS of them in registers. Tiles that are zero by the reference are only cleared.
#include <cstddef>
#include <cstdint>

constexpr int M = $m, N = $n, K = $k;
constexpr size_t A_BATCH = $a_batch, A_ROW = $a_row, A_COLUMN = $a_column;
constexpr size_t B_BATCH = $b_batch, B_ROW = $b_row, B_COLUMN = $b_column;
constexpr int HIGH = $high, WIDE = $wide, DEPTH = $depth, ROWS = $rows, COLUMNS = $columns;
constexpr int DOWN = HIGH / ROWS, ACROSS = WIDE / COLUMNS, THREADS = DOWN * ACROSS;

__device__ __forceinline__ bool kept(int row, int column) { return $keep; }

__global__ __launch_bounds__(THREADS) void matmul(const float* A, const float* B, float* C) {
    __shared__ float a[DEPTH][HIGH + 1], b[DEPTH][WIDE + 1];
    const int row0 = blockIdx.y * HIGH, column0 = blockIdx.x * WIDE;
    const int y = threadIdx.x / ACROSS, x = threadIdx.x % ACROSS;
    A += blockIdx.z * A_BATCH, B += blockIdx.z * B_BATCH, C += blockIdx.z * (size_t(M) * N);
    float sum[ROWS][COLUMNS] = {};
    // the corners decide: what is kept is one side of the diagonal, or everything
    if (kept(row0, column0 + WIDE - 1) || kept(row0 + HIGH - 1, column0))
        for (int k0 = 0; k0 < K; k0 += DEPTH) {
            for (int n = threadIdx.x; n < HIGH * DEPTH; n += THREADS) {  // neighbours in memory to neighbouring threads
                int r = A_COLUMN == 1 ? n / DEPTH : n % HIGH, k = A_COLUMN == 1 ? n % DEPTH : n / HIGH;
                bool inside = row0 + r < M && k0 + k < K;
                a[k][r] = inside ? A[(row0 + r) * A_ROW + (k0 + k) * A_COLUMN] : 0.f;
            }
            for (int n = threadIdx.x; n < WIDE * DEPTH; n += THREADS) {
                int c = B_COLUMN == 1 ? n % WIDE : n / DEPTH, k = B_COLUMN == 1 ? n / WIDE : n % DEPTH;
                bool inside = column0 + c < N && k0 + k < K;
                b[k][c] = inside ? B[(k0 + k) * B_ROW + (column0 + c) * B_COLUMN] : 0.f;
            }
            __syncthreads();
#pragma unroll
            for (int k = 0; k < DEPTH; k++) {
                float from_a[ROWS], from_b[COLUMNS];
#pragma unroll
                for (int i = 0; i < ROWS; i++) from_a[i] = a[k][y + i * DOWN];
#pragma unroll
                for (int j = 0; j < COLUMNS; j++) from_b[j] = b[k][x + j * ACROSS];
#pragma unroll
                for (int i = 0; i < ROWS; i++)
#pragma unroll
                    for (int j = 0; j < COLUMNS; j++) sum[i][j] += from_a[i] * from_b[j];
            }
            __syncthreads();
        }
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) {
            int row = row0 + y + i * DOWN, column = column0 + x + j * ACROSS;
            if (row < M && column < N) C[size_t(row) * N + column] = kept(row, column) ? sum[i][j] : 0.f;
        }
}

$declaration {
$guard
    dim3 grid((N + WIDE - 1) / WIDE, (M + HIGH - 1) / HIGH, $batch);
    matmul<<<grid, THREADS>>>($a, $b, output);
}
