# A GEMM with few tiles and a long K: stream-K shares K among all SMs.
# extents: M=384 N=640 K=8192
gemm()
  .with_dtype(input=fp16, acc=fp32, output=fp32)
  .with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)
  .with_arch(sm_90a)
  .with_threadblockshape(m=128, n=128, k=64)
  .with_stages(4)
  .with_scheduler(tile=stream_k, kernel=tma_cooperative, epilogue=tma_cooperative)
