# Double precision on tensor cores (A100, H100).
# extents: M=256 N=256 K=512
gemm()
  .with_dtype(input=fp64, acc=fp64, output=fp64)
  .with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)
  .with_arch(sm_80)
  .with_tile(m=64, n=32, k=16)
  .with_stages(3)
