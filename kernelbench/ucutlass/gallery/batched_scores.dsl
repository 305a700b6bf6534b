# Attention scores: a batch of Q times the transpose of K, scaled.
# extents: M=256 N=384 K=64 L=8
batched_gemm()
  .with_dtype(input=fp16, acc=fp32, output=fp16)
  .with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)
  .with_arch(sm_90a)
  .with_threadblockshape(m=128, n=128, k=64)
  .with_stages(2)
  .with_scheduler(kernel=tma_cooperative, epilogue=tma_cooperative)
  >> scale(alpha=0.125)
