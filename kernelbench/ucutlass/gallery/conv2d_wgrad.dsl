# The gradient of a convolution's filter, summed over all pixels in FP32.
# extents: N=4 H=28 W=28 C=64 K=128 padding=1
conv2d_wgrad(kernel_h=3, kernel_w=3)
  .with_dtype(input=fp16, acc=fp32, output=fp32)
  .with_arch(sm_90a)
  .with_threadblockshape(m=128, n=64, k=64)
