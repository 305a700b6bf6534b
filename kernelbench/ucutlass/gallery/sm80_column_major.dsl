# The result by columns on Ampere, computed as the product of the transposes: vectors of rows and columns change places.
# extents: M=384 N=256 K=320
gemm()
  .with_dtype(input=bf16, acc=fp32, output=bf16)
  .with_layout(A=ColumnMajor, B=RowMajor, C=ColumnMajor)
  .with_arch(sm_80)
  .with_tile(m=128, n=64, k=32)
  .with_stages(4)
  >> bias() >> per_row_scale() >> aux_store(preactivation) >> relu()
