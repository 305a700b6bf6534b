# A grouped convolution: each of 4 groups has 64 output channels, one group a thread block.
# extents: N=4 H=28 W=28 C=256 K=256 padding=1
group_conv2d(kernel_h=3, kernel_w=3, groups=4)
  .with_dtype(input=fp16, acc=fp32, output=fp16)
  .with_arch(sm_80)
  .with_tile(m=128, n=64, k=32)
  .with_stages(3)
  >> bias() >> leaky_relu(alpha=0.1)
