# Mixture of experts: rows sorted by expert, one launch for all, SiLU fused.
# extents: M=1000 N=512 K=256 E=8
grouped_gemm(expert_count=8)
  .with_dtype(input=bf16, acc=fp32, output=bf16)
  .with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)
  .with_arch(sm_90a)
  .with_threadblockshape(m=128, n=128, k=64)
  .with_stages(3)
  .with_scheduler(kernel=tma_cooperative, epilogue=tma_cooperative)
  >> silu()
