# A convolution along one axis, with stride 2 and dilation 2.
# extents: N=4 W=512 C=64 K=128 padding=2 stride=2 dilation=2
conv1d_fprop(kernel_w=5)
  .with_dtype(input=fp16, acc=fp32, output=fp16)
  .with_arch(sm_90a)
  .with_threadblockshape(m=128, n=128, k=64)
  >> bias() >> mish()
