// kb: problem=1/19 sample=11
// ReLU on the host through tvm-ffi: the call takes tensors, which know their shape, type and device.

#include <tvm/ffi/tvm_ffi.h>

void relu(tvm::ffi::TensorView x, tvm::ffi::TensorView output, int64_t batch_size, int64_t dim) {
    TVM_FFI_CHECK(x.numel() == batch_size * dim, ValueError) << "x has " << x.numel() << " elements";
    const float* in = static_cast<const float*>(x.data_ptr());
    float* out = static_cast<float*>(output.data_ptr());
    int64_t n = x.numel();
#pragma omp parallel for simd
    for (int64_t i = 0; i < n; i++) out[i] = in[i] > 0.f ? in[i] : 0.f;
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(solution, relu);
