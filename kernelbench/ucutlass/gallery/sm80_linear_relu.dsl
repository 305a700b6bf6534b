# A linear layer for Ampere: mma.sync, three stages of cp.async, bias as the source.
# extents: M=512 N=1024 K=512
gemm()
  .with_dtype(input=fp16, acc=fp32, output=fp16)
  .with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)
  .with_arch(sm_80)
  .with_tile(m=128, n=128, k=32)
  .with_stages(3)
  .with_swizzle(pattern=Identity8)
  >> bias() >> relu()
