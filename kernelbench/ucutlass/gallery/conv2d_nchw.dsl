# The same for PyTorch's NCHW tensors in FP32: layouts and types change in the pipeline.
# extents: N=4 H=28 W=28 C=64 K=128 padding=1
pipeline(
  transpose(input, NCHW, NHWC, fp32, fp16),
  transpose(weight, NCHW, NHWC, fp32, fp16),
  conv2d_fprop(kernel_h=3, kernel_w=3)
    .with_dtype(input=fp16, acc=fp32, output=fp16)
    .with_arch(sm_90a)
    .with_threadblockshape(m=128, n=128, k=64)
    >> silu(),
  transpose(output, NHWC, NCHW, fp16, fp32)
)
