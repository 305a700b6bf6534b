# A convolution over time, height and width.
# extents: N=2 D=8 H=14 W=14 C=64 K=64 padding=1
conv3d_fprop(kernel_d=3, kernel_h=3, kernel_w=3)
  .with_dtype(input=bf16, acc=fp32, output=bf16)
  .with_arch(sm_90a)
  .with_threadblockshape(m=64, n=64, k=64)
  >> bias() >> gelu()
