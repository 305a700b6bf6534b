# kb: problem=1/16
# Both operands are transposed on the way.
pipeline(
  transpose(input, NCL, NLC),
  transpose(weight, NCL, NLC),
  gemm()
    .with_dtype(input=fp32, acc=fp32, output=fp32)
    .with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)
    .with_arch(sm_90a)
    .with_threadblockshape(m=256, n=256, k=32).with_cluster(m=2, n=1, k=1)
    .with_stages(3)
    .with_scheduler(kernel=tma_cooperative, epilogue=tma_cooperative)
)
bind(A=A, B=B)
