# A long K split in eight by serial reduction.
# extents: M=256 N=256 K=4096
gemm()
  .with_dtype(input=bf16, acc=fp32, output=fp32)
  .with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)
  .with_arch(sm_80)
  .with_tile(m=128, n=128, k=32)
  .with_stages(3)
  .with_split_k(mode=serial, slices=8)
