# Training: the value before GELU is stored for the backward pass, in the same kernel.
# extents: M=512 N=1024 K=512
gemm()
  .with_dtype(input=fp16, acc=fp32, output=fp16)
  .with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)
  .with_arch(sm_90a)
  .with_threadblockshape(m=128, n=128, k=64)
  .with_stages(3)
  .with_scheduler(kernel=tma_cooperative, epilogue=tma_cooperative)
  >> bias() >> aux_store(preactivation) >> gelu()
