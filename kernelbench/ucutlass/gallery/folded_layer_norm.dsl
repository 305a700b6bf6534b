# A linear layer behind a layer norm whose mean and deviation of each row enter the epilogue; two matrices added.
# extents: M=512 N=1024 K=512
gemm()
  .with_dtype(input=fp16, acc=fp32, output=fp16)
  .with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)
  .with_arch(sm_90a)
  .with_threadblockshape(m=128, n=128, k=64)
  .with_stages(2)
  .with_scheduler(kernel=tma_cooperative, epilogue=tma_cooperative)
  >> custom('(x - mean * weight_sum) * rstd * gain', inputs={'mean': 'column', 'weight_sum': 'row', 'rstd': 'column', 'gain': 'scalar'})
  >> aux_load(residual) >> aux_load(position)
