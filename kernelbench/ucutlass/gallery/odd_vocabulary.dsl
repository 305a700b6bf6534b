# An output whose rows TMA cannot write, such as 50257 logits: stored from registers, without shared memory.
# extents: M=256 N=1003 K=512
gemm()
  .with_dtype(input=bf16, acc=fp32, output=fp32)
  .with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)
  .with_arch(sm_90a)
  .with_threadblockshape(m=128, n=128, k=64)
  .with_alignment(A=8, B=8, C=1)
  .with_stages(4)
  .with_scheduler(kernel=tma_pingpong, epilogue=no_smem)
  >> scale(alpha=0.5) >> clip(min=-1, max=30)
