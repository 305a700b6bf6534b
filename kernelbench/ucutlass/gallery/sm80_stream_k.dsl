# Stream-K on Ampere.
# extents: M=640 N=640 K=2048
gemm()
  .with_dtype(input=fp16, acc=fp32, output=fp16)
  .with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)
  .with_arch(sm_80)
  .with_tile(m=128, n=128, k=32)
  .with_stages(3)
  .with_swizzle(pattern=StreamK)
  >> hardswish()
