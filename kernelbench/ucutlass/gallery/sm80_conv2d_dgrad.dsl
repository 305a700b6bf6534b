# The gradient of a convolution of stride 2.
# extents: N=4 H=28 W=28 C=64 K=128 padding=1 stride=2
conv2d_dgrad(kernel_h=4, kernel_w=4)
  .with_dtype(input=fp16, acc=fp32, output=fp16)
  .with_arch(sm_80)
  .with_tile(m=128, n=64, k=32)
  .with_stages(3)
