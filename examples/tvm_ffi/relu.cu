// kb: problem=1/19 sample=12
// ReLU through tvm-ffi: four elements a thread, in the stream that PyTorch works in.

#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/tvm_ffi.h>

__global__ void relu4(const float4* x, float4* y, int64_t n4) {
    int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i < n4) {
        float4 v = x[i];
        y[i] = make_float4(fmaxf(v.x, 0.f), fmaxf(v.y, 0.f), fmaxf(v.z, 0.f), fmaxf(v.w, 0.f));
    }
}

__global__ void relu_rest(const float* x, float* y, int64_t begin, int64_t n) {
    int64_t i = begin + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.f);
}

void relu(tvm::ffi::TensorView x, tvm::ffi::TensorView output, int64_t batch_size, int64_t dim) {
    DLDevice device = x.device();
    auto stream = static_cast<cudaStream_t>(TVMFFIEnvGetStream(device.device_type, device.device_id));
    const float* in = static_cast<const float*>(x.data_ptr());
    float* out = static_cast<float*>(output.data_ptr());
    int64_t n = x.numel(), n4 = n / 4;
    if (n4) relu4<<<unsigned((n4 + 255) / 256), 256, 0, stream>>>((const float4*)in, (float4*)out, n4);
    if (n % 4) relu_rest<<<1, 4, 0, stream>>>(in, out, n4 * 4, n);
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(solution, relu);
