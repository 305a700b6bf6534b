# The same with slices in memory of their own and a second kernel that adds them.
# extents: M=256 N=256 K=4096
gemm()
  .with_dtype(input=fp16, acc=fp32, output=fp32)
  .with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)
  .with_arch(sm_80)
  .with_tile(m=128, n=128, k=32)
  .with_stages(3)
  .with_split_k(mode=parallel, slices=8)
