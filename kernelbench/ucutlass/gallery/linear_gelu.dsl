# A linear layer with GELU at full speed: two warp groups on tiles of 128 x 256, clusters of two.
# extents: M=1024 N=1024 K=1024
gemm()
  .with_dtype(input=fp16, acc=fp32, output=fp16)
  .with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)
  .with_arch(sm_90a)
  .with_threadblockshape(m=256, n=256, k=64).with_cluster(m=2, n=1, k=1)
  .with_stages(3)
  .with_scheduler(kernel=tma_cooperative, epilogue=tma_cooperative, raster=along_m, max_swizzle=2)
  >> bias() >> gelu()
