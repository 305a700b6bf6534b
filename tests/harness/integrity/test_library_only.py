"""Whose a kernel is, by its name: of real ones, seen by CUPTI on an H100."""

import pytest

from harness.integrity import library_only
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


def profile(**ms):
    return {"kernels": [{"name": name, "ms": time} for name, time in ms.items()]}


@pytest.mark.parametrize("name", LIBRARY)
def test_library_kernels_are_known(name):
    assert library_only.own_kernels({"kernels": [{"name": name, "ms": 1.0}]}) == ({}, 0)


@pytest.mark.parametrize("name", OWN)
def test_everything_else_is_the_solutions_own(name):
    assert library_only.own_kernels({"kernels": [{"name": name, "ms": 1.0}]}) == ({name: 1.0}, 1.0)


def check(found):
    library_only.check(found, library_only.own_kernels(found)[1])


def test_a_fused_epilogue_behind_a_library_gemm_is_enough():
    check(profile(nvjet_tst_128x256=2.6, epilogue=0.07))


@pytest.mark.parametrize("found", [profile(nvjet_tst_128x256=2.6), profile(), profile(nvjet_tst=2.6, ghost=0.002)])
def test_libraries_alone_or_with_a_ghost_are_not(found):
    with pytest.raises(CandidateFailure, match="track 'kernels'") as error:
        check(found)
    assert error.value.rule == "library_only"
