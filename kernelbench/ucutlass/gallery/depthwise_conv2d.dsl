# A depthwise convolution of a mobile network, with bias and hard swish.
# extents: N=4 H=28 W=28 C=96 K=96 padding=1
depthwise_conv2d(kernel_h=3, kernel_w=3)
  .with_dtype(input=fp16, acc=fp32, output=fp16)
  .with_arch(sm_80)
  >> bias() >> hardswish()
