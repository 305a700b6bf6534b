"""Whose a kernel is, by its name: of real ones, seen by CUPTI on an H100."""

import pytest
from linear_time import MEGABYTE, in_linear_time

from harness.integrity import library_only
from harness.integrity.origin import Origin, identifier
from harness.result import CandidateFailure

LIBRARY = [
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>, std::array<char*, 1ul> >(int, X)",
    "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float>(float*, float const*, int)",
    "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel",
    "sm90_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x32_kernel__5x_cudnn",
    "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT",
    "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(P)",
    "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float>::Params)",
    "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64> >(P)",
    "void cublasLt::splitKreduce_kernel<32, 16, int, float>(cublasLt::cublasSplitKParams<float>)",
    "void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>(cudnn::bn_fw_params)",
    "triton_poi_fused_relu_0",
    "memcpy",
]
OWN = [
    "relu_kernel(float const*, float*, unsigned long)",
    "void rms_norm<64>(float const*, float*, unsigned long, unsigned long, float)",
    "softmax_kernel",
    "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int, int>, Mine> >(P)",
    "matmul(float const*, float const*, float*, int, int, int)",
    "_layer_norm_fwd",
    # of µCUTLASS's compiler, as nm names them; cutlass_ alone would be a library's
    "void cutlass::device_kernel<ucutlass_4d580492dc18b6c7::kernel0::ucutlass_conv>"
    "(ucutlass_4d580492dc18b6c7::kernel0::ucutlass_conv::Params)",
    "void cutlass::Kernel2<ucutlass_b3bfa903911e3c04::kernel0::ucutlass_gemm>"
    "(ucutlass_b3bfa903911e3c04::kernel0::ucutlass_gemm::Params)",
    "ucutlass_9e6a6406d31fb23a::kernel0::ucutlass_depthwise(ucutlass_9e6a6406d31fb23a::kernel0::Call)",
    "void ucutlass_6afbf4af36f07f80::ucutlass_transpose<cutlass::half_t, float>(X*, float const*, int, int)",
]
ALIKE = [  # with types that extensions pass, or names of which libraries have some that are much alike
    "void scale_kernel<c10::Half>(c10::Half const*, c10::Half*, int)",
    "scale_kernel(c10::BFloat16 const*, c10::BFloat16*, int)",
    "void k(at::PackedTensorAccessor32<float, 2ul, at::RestrictPtrTraits, int>)",
    "void (anonymous namespace)::k<float>(torch::headeronly::PackedTensorAccessor32<float, 2ul>)",
    "lstm_cell_kernel(float const*, float*, int)", "gru_cell<float>(float*)", "rnn_step_kernel",
    "gemm_transposed_b_kernel(float*)", "flash_fwd_kernel", "void mine::flash_fwd_kernel<64>(float*)",
    "triton_fused_gelu", "triton_red_sum", "winograd_conv_kernel(float*)", "convolve_rows(float*)",
    "dot_kernel(float*)", "hopper_gemm_128x128(float*)", "sm80_gemm_own",
]  # fmt: skip
# as CUPTI sees them where cuBLAS, cuDNN, ATen, CUTLASS of PyTorch, or Inductor is called
HIDDEN = [
    "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT", "ampere_sgemm_128x64_nn", "triton_poi_fused_relu_0", "triton_poi__0",
    "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false, false, "
    "cublasGemvParamsEx<int, cublasGemvTensorStridedBatched<float const> > >(P, float, float)",
    "void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensor<float const>, float> >(P)",
    "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, float, cublasGemvParamsEx<int> >(P)",
    "void explicit_convolve_sgemm<float, int, 128, 6, 7, 3, 3, 5, 0, false>(int, int, int, float const*)",
    "void fft2d_r2c_16x16<float>(float2*, float const*, int, int, int, int, int, int, int, int)",
    "void RNN_blockPersist_fp_LSTM_HMMA<__half, __half, float, 1, 128>(__half const*)",
    "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64> >(P)",
    "void (anonymous namespace)::elementwise_kernel_with_index<int, at::native::arange_cuda_out(S)::{lambda()#1}>(int)",
    "void cutlass::device_kernel<at::cuda::detail::enable_3x_kernel_for_sm9x<cutlass::gemm::kernel::Gemm> >(P)",
    "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(P)", "memcpy",
]  # fmt: skip


def profile(**ms):
    return {"kernels": [{"name": name, "ms": time} for name, time in ms.items()]}


@pytest.mark.parametrize("name", LIBRARY)
def test_library_kernels_are_known(name):
    assert library_only.own_kernels({"kernels": [{"name": name, "ms": 1.0}]}) == ({}, 0)


@pytest.mark.parametrize("name", OWN)
def test_everything_else_is_the_solutions_own(name):
    assert library_only.own_kernels({"kernels": [{"name": name, "ms": 1.0}]}) == ({name: 1.0}, 1.0)


def only(kernel, *texts):
    """Return whether the one kernel of a call is the solution's own."""
    return bool(library_only.own_kernels({"kernels": [{"name": kernel, "ms": 1.0}]}, Origin(texts))[0])


def defined(kernel, also=""):
    return f"__global__ void __launch_bounds__(256, 2)\n{identifier(kernel)}(const float* x) {{}}\n{also}"


@pytest.mark.parametrize("kernel", ALIKE)
def test_a_kernel_that_the_source_defines_is_its_own_though_libraries_have_such_names_and_types(kernel):
    """An honest kernel of `c10::Half`, or called `lstm_cell_kernel`, was taken for PyTorch's or cuDNN's."""
    assert only(kernel, defined(kernel))
    assert "(" in kernel or only(kernel, f"@triton.jit\ndef {kernel}(x): pass\n")


@pytest.mark.parametrize("kernel", HIDDEN)
def test_a_librarys_own_kernel_is_not_though_the_source_defines_an_unused_one_of_its_name(kernel):
    """Its name is all that tells: had a definition freed each, calls of cuBLAS would have passed for own work."""
    name = identifier(kernel)
    assert not only(kernel, defined(kernel, also=kernel), f"@triton.jit\ndef {name}(x): pass\n# enable_if, {kernel}")


@pytest.mark.parametrize(
    "text",
    [
        "// {} is what this replaces", "# __global__ void {}(const float* x) {{", "names = ['{}']",
        "/* __global__ void {}(float* x) {{}} */", "__global__ void {}(float* x);", "void {}(float* x) {{}}",
        "__global__ void k(float* x) {{ {}(x); }}",
    ],
)  # fmt: skip
def test_what_the_source_only_names_or_calls_is_not_its_own_where_a_library_has_such_a_name(text):
    """A word of the source was enough for a kernel that no pattern knew, as ATen's `softmax_warp_forward`."""
    softmax = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 4, false, false>(float*)"
    for kernel in ("flash_fwd_kernel(P)", "hopper_gemm_v2(float*)", "triton_fused_gelu", softmax):
        assert not only(kernel, text.format(identifier(kernel)))


@pytest.mark.parametrize("piece", ["__global__ ", "__global__(", "/* ", "a(", "a \n", "//", "__global__ a({"])
def test_kernels_are_found_in_a_megabyte_of_source_in_linear_time(piece):
    with in_linear_time():
        assert not only("flash_fwd_kernel(P)", piece * (MEGABYTE // len(piece)))


def check(found):
    library_only.check(found, library_only.own_kernels(found)[1])


def test_a_fused_epilogue_behind_a_library_gemm_is_enough():
    check(profile(nvjet_tst_128x256=2.6, epilogue=0.07))


@pytest.mark.parametrize("found", [profile(nvjet_tst_128x256=2.6), profile(), profile(nvjet_tst=2.6, ghost=0.002)])
def test_libraries_alone_or_with_a_ghost_are_not(found):
    with pytest.raises(CandidateFailure, match="track 'kernels'") as error:
        check(found)
    assert error.value.rule == "library_only"
