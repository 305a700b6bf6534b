# FP32 tensors through BF16 tensor cores: both operands are converted on the way.
# extents: M=512 N=512 K=512
pipeline(
  transpose(input, NCL, NCL, fp32, bf16),
  transpose(weight, NCL, NCL, fp32, bf16),
  gemm()
    .with_dtype(input=bf16, acc=fp32, output=fp32)
    .with_layout(A=RowMajor, B=RowMajor, C=RowMajor)
    .with_arch(sm_90a)
    .with_threadblockshape(m=128, n=128, k=64).with_stages(3)
    .with_scheduler(kernel=tma_cooperative, epilogue=tma_cooperative)
)
