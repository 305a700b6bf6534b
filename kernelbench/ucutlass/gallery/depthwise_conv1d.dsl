# A causal convolution of a state-space model, in FP32.
# extents: N=4 W=256 C=64 K=64 padding=3
depthwise_conv1d(kernel_w=4)
  .with_dtype(input=fp32, acc=fp32, output=fp32)
  .with_arch(sm_80)
  >> bias()
