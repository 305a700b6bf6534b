# INT8 weights and activations, sums in INT32, output in FP32 after scale and bias.
# extents: M=512 N=1024 K=1024
gemm()
  .with_dtype(input=int8, acc=int32, output=fp32)
  .with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)
  .with_arch(sm_90a)
  .with_threadblockshape(m=128, n=128, k=128)
  .with_stages(3)
  .with_scheduler(kernel=tma_cooperative, epilogue=tma_cooperative)
  >> per_col_scale() >> bias()
