# An FP32 linear layer (weight [N, K], as PyTorch stores it) on TF32 tensor cores.
# extents: M=512 N=1024 K=512
gemm()
  .with_dtype(input=fp32, acc=fp32, output=fp32)
  .with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)
  .with_arch(sm_90a)
  .with_threadblockshape(m=128, n=128, k=32)
  .with_stages(4)
  .with_scheduler(kernel=tma_cooperative, epilogue=tma_cooperative)
  >> bias() >> leaky_relu(alpha=0.01)
