"""Subsets of TritonBench-G that KernelBand (2025) was measured on, as problem selectors."""

from __future__ import annotations

# Without the one that a simplification makes trivial (section 4.1).
_EXCLUDED = frozenset({"sin_computation"})

# Table 8: stratified by category and difficulty.
_FIFTY = frozenset(
    """
    cosine_compute
    flash_decode2_phi matmul_kernel matrix_transpose triton_mul2 square_matrix triton_argmax softmax_triton1
    flash_decode2_llama pow_scalar_tensor embedding_triton_kernel relu_strided_buffer swiglu_backward swiglu_triton
    chunk_cumsum_vector reversed_cumsum_scalar kldiv_triton triton_matmul var_len_copy layer_norm_welfold
    rmsnorm_fused_llama uniform_sampling quantize_kv_copy matrix_reduction softmax_triton2 softmax_triton3
    attention_fwd_triton1 attention_fwd_triton2 attention_kernel triton_attention matrix_vector_multip
    fast_rope_embedding rope_backward_transform relu_triton_kernel chunk_gate_recurrence fused_recurrent_retention
    cross_entropy_ops fast_ce_loss int8_matmul_quantization int_scaled_matmul matmul_dequantize_int4 rms_matmul_rbe
    streamk_matmul kcache_copy_triton fused_layernorm_triton bgmv_expand_slice quantize_copy_kv logsumexp_fwd
    ksoftmax_triton
    context_attn_bloom
    """.split()
)

# The paper compares 30 of the 50 with PyTorch and does not list them (appendix G): those with native operators, without
# decoding attention, INT4 and LoRA. These are the 20 that we leave out by that rule.
_NOT_NATIVE = frozenset(
    """
    flash_decode2_phi flash_decode2_llama attention_fwd_triton1 attention_fwd_triton2 context_attn_bloom
    chunk_gate_recurrence fused_recurrent_retention matmul_dequantize_int4 int8_matmul_quantization
    bgmv_expand_slice quantize_kv_copy quantize_copy_kv kcache_copy_triton var_len_copy uniform_sampling
    rms_matmul_rbe streamk_matmul rope_backward_transform chunk_cumsum_vector int_scaled_matmul
    """.split()
)

SUITES = ("tritonbench-183", "tritonbench-50", "tritonbench-30")


def members(suite: str, names: set[str]) -> set[str]:
    """The names in a suite of ``SUITES``, of those that a checkout has."""
    chosen = {
        "tritonbench-183": names - _EXCLUDED,
        "tritonbench-50": names & _FIFTY,
        "tritonbench-30": names & (_FIFTY - _NOT_NATIVE),
    }
    return chosen[suite]
