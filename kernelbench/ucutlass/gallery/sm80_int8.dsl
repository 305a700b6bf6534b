# INT8 on Ampere, output in FP32.
# extents: M=512 N=512 K=1024
gemm()
  .with_dtype(input=int8, acc=int32, output=fp32)
  .with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)
  .with_arch(sm_80)
  .with_tile(m=128, n=128, k=64)
  .with_stages(3)
  >> scale(alpha=0.01) >> sigmoid()
