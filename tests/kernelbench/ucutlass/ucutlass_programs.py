"""Programs that tests begin with: each is accepted as it is."""

TYPES = ".with_dtype(input=fp16, acc=fp32, output=fp16)"
LAYOUT = ".with_layout(A=RowMajor, B=ColumnMajor, C=RowMajor)"
SM90 = f"{TYPES}{LAYOUT}.with_arch(sm_90a)"
SM80 = f"{TYPES}{LAYOUT}.with_arch(sm_80)"
GEMM90 = f"gemm(){SM90}"
GEMM80 = f"gemm(){SM80}"
COOPERATIVE = f"{GEMM90}.with_scheduler(kernel=tma_cooperative).with_stages(2)"
CONV = "conv2d_fprop(kernel_h=3, kernel_w=3)"
CONV90 = f"{CONV}{TYPES}.with_arch(sm_90a)"
CONV80 = f"{CONV}{TYPES}.with_arch(sm_80)"
CONV1D = f"conv1d_fprop(kernel_w=3){TYPES}.with_arch(sm_90a)"

# Figure 1 of the paper, as printed
FIGURE_1 = """
gemm()
.with_dtype (input=fp16, acc=fp32,
output=fp16)
.with_layout (A=RowMajor, B=RowMajor,
C=RowMajor)
.with_arch(sm_90a)
.with_threadblockshape (m=128, n=128,
k=64)
.with_stages(2)
.with_alignment (A=8, B=8, C=8)
.with_scheduler (kernel=tma, epilogue=tma)
>> bias() >> gelu() >> clip(min=0, max=6)
"""

# The two templates of the constraint block in appendix A.1
TEMPLATE = """
gemm() .with_dtype (input=fp16, acc=fp32, output=fp16)
.with_layout (A=RowMajor, B=ColumnMajor, C=RowMajor).with_arch(sm_90a)
.with_threadblockshape (m=256, n=128, k=64).with_alignment (A=8, B=8, C=8)
.with_scheduler (kernel=tma_cooperative, epilogue=tma_cooperative)
"""
SWAP_TEMPLATE = """
gemm() .with_dtype (input=fp32, acc=fp32, output=fp32)
.with_layout (A=RowMajor, B=RowMajor, C=RowMajor).with_arch(sm_90a)
.with_threadblockshape (m=128, n=128, k=32).with_cluster(m=4, n=2, k=1)
.with_alignment (A=4, B=4, C=4).with_stages(3).with_operand_swap(true)
"""
