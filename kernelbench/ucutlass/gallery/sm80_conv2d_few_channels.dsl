# The first layer of an image network: 4 channels.
# extents: N=4 H=64 W=64 C=4 K=64 padding=3 stride=2
conv2d_fprop(kernel_h=7, kernel_w=7)
  .with_dtype(input=fp16, acc=fp32, output=fp16)
  .with_arch(sm_80)
  .with_tile(m=128, n=64, k=32)
  .with_stages(3)
  .with_alignment(A=4, B=4, C=8)
  .with_iterator(few_channels)
  >> bias() >> relu()
