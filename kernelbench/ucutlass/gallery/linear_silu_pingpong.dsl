# A BF16 linear layer whose two warp groups take turns: one multiplies while the other stores.
# extents: M=1024 N=1024 K=512
gemm()
  .with_dtype(input=bf16, acc=fp32, output=bf16)
  .with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)
  .with_arch(sm_90a)
  .with_threadblockshape(m=64, n=256, k=64)
  .with_stages(4)
  .with_scheduler(kernel=tma_pingpong, epilogue=tma)
  >> bias() >> silu()
