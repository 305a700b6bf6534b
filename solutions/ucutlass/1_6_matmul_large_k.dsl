# kb: problem=1/6
# Four tiles and a K of 524288: stream-K gives every SM a share of it.
pipeline(
  transpose(weight, NCL, NLC),
  gemm()
    .with_dtype(input=fp32, acc=fp32, output=fp32)
    .with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)
    .with_arch(sm_90a)
    .with_threadblockshape(m=128, n=128, k=32).with_cluster(m=1, n=1, k=1)
    .with_stages(5)
    .with_scheduler(kernel=tma_cooperative, epilogue=tma_cooperative, tile=stream_k)
)
bind(A=A, B=B)
