"""Kernels of a pipeline's transposes: change the order of axes, the type, or both, in one pass over memory."""

from __future__ import annotations

from dataclasses import dataclass

from kernelbench.ucutlass.codegen.elements import cpp
from kernelbench.ucutlass.ir import Axes, DType

# A tile of 32 x 32 elements is read and written in rows of 32; the 33rd column keeps banks apart. Casts move four
# elements a thread.
DEFINITIONS = """\
constexpr int TRANSPOSE_TILE = 32, TRANSPOSE_ROWS = 8, CAST_THREADS = 256, CAST_EACH = 4;

template <class To, class From>
__global__ void ucutlass_transpose(To* to, From const* from, int rows, int columns) {
  __shared__ To tile[TRANSPOSE_TILE][TRANSPOSE_TILE + 1];
  int64_t const base = int64_t(blockIdx.z) * rows * columns;
  int column = blockIdx.x * TRANSPOSE_TILE + threadIdx.x;
  for (int i = threadIdx.y; i < TRANSPOSE_TILE; i += TRANSPOSE_ROWS) {
    int const row = blockIdx.y * TRANSPOSE_TILE + i;
    if (row < rows && column < columns) tile[i][threadIdx.x] = To(from[base + int64_t(row) * columns + column]);
  }
  __syncthreads();
  int const row = blockIdx.y * TRANSPOSE_TILE + threadIdx.x;
  for (int i = threadIdx.y; i < TRANSPOSE_TILE; i += TRANSPOSE_ROWS) {
    column = blockIdx.x * TRANSPOSE_TILE + i;
    if (row < rows && column < columns) to[base + int64_t(column) * rows + row] = tile[threadIdx.x][i];
  }
}

template <class To, class From>
__global__ void ucutlass_cast(To* to, From const* from, int64_t count) {
  int64_t const first = (int64_t(blockIdx.x) * CAST_THREADS + threadIdx.x) * CAST_EACH;
  if (first + CAST_EACH <= count) {
    auto const values = *reinterpret_cast<cutlass::AlignedArray<From, CAST_EACH> const*>(from + first);
    cutlass::AlignedArray<To, CAST_EACH> results;
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < CAST_EACH; ++i) results[i] = To(values[i]);
    *reinterpret_cast<cutlass::AlignedArray<To, CAST_EACH>*>(to + first) = results;
  } else {
    for (int64_t i = first; i < count; ++i) to[i] = To(from[i]);
  }
}

template <class To, class From>
int transpose(To* to, From const* from, int64_t batch, int64_t rows, int64_t columns, cudaStream_t stream) {
  dim3 const grid(unsigned((columns + TRANSPOSE_TILE - 1) / TRANSPOSE_TILE),
                  unsigned((rows + TRANSPOSE_TILE - 1) / TRANSPOSE_TILE), unsigned(batch));
  ucutlass_transpose<<<grid, dim3(TRANSPOSE_TILE, TRANSPOSE_ROWS), 0, stream>>>(to, from, int(rows), int(columns));
  auto const error = cudaGetLastError();
  return error ? CUDA_ERROR + int(error) : 0;
}

template <class To, class From>
int cast(To* to, From const* from, int64_t count, cudaStream_t stream) {
  int64_t const block = int64_t(CAST_THREADS) * CAST_EACH;
  ucutlass_cast<<<unsigned((count + block - 1) / block), CAST_THREADS, 0, stream>>>(to, from, count);
  auto const error = cudaGetLastError();
  return error ? CUDA_ERROR + int(error) : 0;
}
"""


@dataclass(frozen=True)
class Move:
    """One tensor on its way between the caller's order of axes and the kernel's; ``extents`` as it is read."""

    source: Axes
    target: Axes
    from_dtype: DType
    to_dtype: DType
    extents: tuple[str, ...]  # C++ values, outermost first

    @property
    def count(self) -> str:
        return " * ".join(f"({extent})" for extent in self.extents)

    @property
    def bytes(self) -> str:
        """Return the C++ size of the result, in bytes."""
        return f"{self.count} * sizeof({cpp(self.to_dtype)})"

    def call(self, to: str, source: str) -> str:
        """Return the C++ call; a matrix is a batch of one."""
        if self.source is self.target:
            return f"cast({to}, {source}, {self.count}, stream)"
        extents = [f"({extent})" for extent in self.extents]
        batch, rest = ("1", extents) if len(extents) == 2 else (extents[0], extents[1:])
        channels_first = self.source in (Axes.NCL, Axes.NCHW)
        rows, columns = (rest[:1], rest[1:]) if channels_first else (rest[:-1], rest[-1:])
        return f"transpose({to}, {source}, {batch}, {' * '.join(rows)}, {' * '.join(columns)}, stream)"
