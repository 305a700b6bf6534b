# Full FP32 on CUDA cores, where TF32 is not accurate enough; a batch.
# extents: M=256 N=384 K=128 L=3
batched_gemm()
  .with_dtype(input=fp32, acc=fp32, output=fp32)
  .with_layout(A=RowMajor, B=RowMajor, C=RowMajor)
  .with_arch(sm_80)
  >> elu(alpha=1.0)
