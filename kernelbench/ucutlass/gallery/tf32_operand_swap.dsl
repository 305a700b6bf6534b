# A square FP32 product of two row-major matrices: operands swapped, because wgmma reads TF32 along K.
# extents: M=512 N=512 K=512
gemm()
  .with_dtype(input=fp32, acc=fp32, output=fp32)
  .with_layout(A=RowMajor, B=RowMajor, C=RowMajor)
  .with_arch(sm_90a)
  .with_threadblockshape(m=128, n=128, k=32)
  .with_stages(3)
  .with_alignment(A=4, B=4, C=4)
  .with_scheduler(kernel=tma_cooperative, epilogue=tma_cooperative)
  .with_operand_swap(true)
