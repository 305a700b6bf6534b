# A convolution with bias, ReLU and a residual, by TMA's im2col loads.
# extents: N=4 H=28 W=28 C=64 K=128 padding=1
conv2d_fprop(kernel_h=3, kernel_w=3)
  .with_dtype(input=fp16, acc=fp32, output=fp16)
  .with_arch(sm_90a)
  .with_threadblockshape(m=128, n=128, k=64)
  >> bias() >> relu() >> aux_load(residual)
