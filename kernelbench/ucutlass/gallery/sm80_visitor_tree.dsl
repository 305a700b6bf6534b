# TF32 on Ampere with a visitor tree: scale by row, bias, GELU, and the result stored twice.
# extents: M=512 N=384 K=256
gemm()
  .with_dtype(input=tf32, acc=fp32, output=fp32)
  .with_layout(A=RowMajor, B=RowMajor, C=RowMajor)
  .with_arch(sm_80)
  .with_tile(m=128, n=128, k=16)
  .with_stages(3)
  >> per_row_scale() >> bias() >> aux_store(preactivation) >> gelu()
