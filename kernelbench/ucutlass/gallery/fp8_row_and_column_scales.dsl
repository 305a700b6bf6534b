# FP8 inference: the scales of activations (rows) and weights (columns) are applied in the epilogue.
# extents: M=512 N=1024 K=1024
gemm()
  .with_dtype(input=fp8_e4m3, acc=fp32, output=bf16)
  .with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)
  .with_arch(sm_90a)
  .with_threadblockshape(m=128, n=128, k=128)
  .with_stages(3)
  .with_scheduler(kernel=tma_cooperative, epilogue=tma_cooperative)
  >> per_row_scale() >> per_col_scale()
