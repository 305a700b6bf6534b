# The gradient of a filter of three dimensions.
# extents: N=2 D=6 H=10 W=10 C=32 K=64 padding=1
conv3d_wgrad(kernel_d=3, kernel_h=3, kernel_w=3)
  .with_dtype(input=fp16, acc=fp32, output=fp32)
  .with_arch(sm_80)
  .with_tile(m=64, n=64, k=32)
  .with_stages(3)
