# The second half of SwiGLU: SiLU of the product times a gate, by a custom expression.
# extents: M=512 N=1024 K=512
gemm()
  .with_dtype(input=bf16, acc=fp32, output=bf16)
  .with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)
  .with_arch(sm_90a)
  .with_threadblockshape(m=128, n=128, k=64)
  .with_stages(3)
  .with_scheduler(kernel=tma_cooperative, epilogue=tma_cooperative)
  >> custom('silu(x) * gate', inputs={'gate': 'matrix'})
