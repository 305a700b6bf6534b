# The published example: bias, GELU and clipping fused into an FP16 GEMM.
# extents: M=1024 N=1024 K=512
gemm()
  .with_dtype(input=fp16, acc=fp32, output=fp16)
  .with_layout(A=RowMajor, B=RowMajor, C=RowMajor)
  .with_arch(sm_90a)
  .with_threadblockshape(m=128, n=128, k=64)
  .with_stages(2)
  .with_alignment(A=8, B=8, C=8)
  .with_scheduler(kernel=tma, epilogue=tma)
  >> bias() >> gelu() >> clip(min=0, max=6)
