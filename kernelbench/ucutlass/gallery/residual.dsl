# A projection added to its residual: D = A B + C, with the source pipeline of the epilogue.
# extents: M=512 N=1024 K=512
gemm()
  .with_dtype(input=fp16, acc=fp32, output=fp16)
  .with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)
  .with_arch(sm_90a)
  .with_threadblockshape(m=128, n=128, k=64)
  .with_stages(3)
  .with_scheduler(kernel=tma_cooperative, epilogue=tma_cooperative)
  .with_scaling(alpha=1.0, beta=1.0)
  >> bias()
