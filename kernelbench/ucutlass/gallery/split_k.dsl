# The same by a fixed split of K in four, with a bias and ReLU after the sum.
# extents: M=256 N=512 K=8192
gemm()
  .with_dtype(input=bf16, acc=fp32, output=fp32)
  .with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)
  .with_arch(sm_90a)
  .with_threadblockshape(m=128, n=128, k=64)
  .with_stages(4)
  .with_scheduler(tile=stream_k, kernel=tma_cooperative, epilogue=tma_cooperative, splits=4)
  >> bias() >> relu()
