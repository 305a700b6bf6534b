# Rows of 4 elements' alignment, too little for TMA: cp.async loads, wgmma computes.
# extents: M=256 N=512 K=508
gemm()
  .with_dtype(input=fp16, acc=fp32, output=fp16)
  .with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)
  .with_arch(sm_90a)
  .with_threadblockshape(m=128, n=128, k=64)
  .with_alignment(A=4, B=4, C=8)
  .with_stages(3)
  .with_scheduler(kernel=cp_async, epilogue=tma)
  >> relu()
