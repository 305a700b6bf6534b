# A pipeline of two linear layers: the hidden layer stays in the workspace.
# extents: M=512 N=1024 K=256 N2=256
pipeline(
  gemm()
    .with_dtype(input=fp16, acc=fp32, output=fp16)
    .with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)
    .with_arch(sm_90a)
    .with_threadblockshape(m=128, n=128, k=64).with_stages(3)
    .with_scheduler(kernel=tma_cooperative, epilogue=tma_cooperative)
    >> bias() >> gelu(),
  gemm()
    .with_dtype(input=fp16, acc=fp32, output=fp16)
    .with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)
    .with_arch(sm_90a)
    .with_threadblockshape(m=128, n=64, k=64).with_stages(3)
    .with_scheduler(kernel=tma_cooperative, epilogue=tma_cooperative)
    >> bias()
)
