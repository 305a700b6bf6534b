# The result by columns, for a consumer that reads it transposed; a vector for each row.
# extents: M=512 N=384 K=512
gemm()
  .with_dtype(input=fp16, acc=fp32, output=fp16)
  .with_layout(A=ColumnMajor, B=RowMajor, C=ColumnMajor)
  .with_arch(sm_90a)
  .with_threadblockshape(m=128, n=128, k=64)
  .with_stages(3)
  .with_scheduler(kernel=tma_pingpong, epilogue=tma)
  >> column_broadcast(offset) >> tanh()
