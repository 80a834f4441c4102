// The functions of cuDNN that the backend calls, on an emulated GPU: convolutions of images in NCHW order.

#if __has_include(<cudnn.h>)

#include <cudnn.h>

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/cuda/emulation/gpu.h"
#include "kernels/cuda/emulation/host_product.h"

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

// Of a tensor or a filter.
struct Elements4d {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::array<int64_t, 4> shape = {};

  int64_t count() const { return shape[0] * shape[1] * shape[2] * shape[3]; }
};

struct cudnnTensorStruct : Elements4d {};
struct cudnnFilterStruct : Elements4d {};

struct cudnnConvolutionStruct {
  int64_t padding = 0, stride = 1;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};

namespace {

// A workspace, so that nobody does without; and in one case more than anybody has.
constexpr size_t kLeastBytes = 1000, kMostBytes = size_t{1} << 40;

// What takes part in a convolution, and one of them is what it computes: y = x * w, dx = dy * w or dw = x * dy.
enum Role { kX, kW, kY };

struct Convolution {
  // By role.
  std::array<Elements4d, 3> tensors;
  cudnnConvolutionStruct how;
};

// Whether y has the shape of x convolved with w, with the workspace for it.
cudnnStatus_t Check(const Convolution& convolution, size_t* bytes) {
  // By name: clang 14 does not capture structured bindings.
  const Elements4d &x = convolution.tensors[kX], &w = convolution.tensors[kW], &y = convolution.tensors[kY];
  const cudnnConvolutionStruct& how = convolution.how;
  *bytes = w.shape[2] == 5 ? kMostBytes : kLeastBytes;
  const auto positions = [&](int i) { return (x.shape[i] + 2 * how.padding - w.shape[i]) / how.stride + 1; };
  const bool fit = x.type == w.type && x.type == y.type && x.shape[1] == w.shape[1] &&
                   y.shape == std::array<int64_t, 4>{x.shape[0], w.shape[0], positions(2), positions(3)};
  return fit ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

// Calls use({element of x, element of w, element of y}) for every product of a convolution, those of the padding left
// out.
template <typename Use>
void ForProducts(const Convolution& convolution, const Use& use) {
  const auto& [x, w, y] = convolution.tensors;
  const cudnnConvolutionStruct& how = convolution.how;
  const auto& [filters, channels, rows, columns] = w.shape;
  int64_t to = 0;
  for (int64_t image = 0; image < y.shape[0]; ++image) {
    for (int64_t filter = 0; filter < filters; ++filter) {
      for (int64_t oh = 0; oh < y.shape[2]; ++oh) {
        for (int64_t ow = 0; ow < y.shape[3]; ++ow, ++to) {
          for (int64_t at = 0; at < channels * rows * columns; ++at) {
            const int64_t channel = at / (rows * columns), i = at / columns % rows, j = at % columns;
            const int64_t h = oh * how.stride + i - how.padding, v = ow * how.stride + j - how.padding;
            if (h < 0 || h >= x.shape[2] || v < 0 || v >= x.shape[3]) continue;
            use(std::array<int64_t, 3>{((image * channels + channel) * x.shape[2] + h) * x.shape[3] + v,
                                       filter * channels * rows * columns + at, to});
          }
        }
      }
    }
  }
}

bool IsKnown(cudnnDataType_t type) {
  return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_BFLOAT16 || type == CUDNN_DATA_HALF;
}

cudaDataType_t DataType(cudnnDataType_t type) {
  if (type == CUDNN_DATA_BFLOAT16) return CUDA_R_16BF;
  return type == CUDNN_DATA_HALF ? CUDA_R_16F : CUDA_R_32F;
}

// As products take them.
std::vector<float> Read(const Elements4d& tensor, const void* data, cudnnMathType_t math) {
  std::vector<float> elements(tensor.count());
  for (size_t i = 0; i < elements.size(); ++i) {
    elements[i] = rubato::cuda::emulation::Element(DataType(tensor.type), data, static_cast<int64_t>(i));
    if (math != CUDNN_FMA_MATH && tensor.type == CUDNN_DATA_FLOAT) {
      elements[i] = rubato::cuda::emulation::RoundToTf32(elements[i]);
    }
  }
  return elements;
}

// What was there before is not looked at if it does not count: it may be anything.
void Write(const Elements4d& tensor, float factor, const std::vector<float>& sums, float kept, void* data) {
  const cudaDataType_t type = DataType(tensor.type);
  for (size_t i = 0; i < sums.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const float before = kept == 0 ? 0 : kept * rubato::cuda::emulation::Element(type, data, at);
    rubato::cuda::emulation::SetElement(type, data, at, factor * sums[i] + before);
  }
}

// What a call of any pass has beside its tensors.
struct Call {
  cudnnHandle_t handle;
  const void *alpha, *beta;
  void* workspace;
  size_t bytes;
};

struct Operand {
  Role role;
  const void* data;
};

// Enqueues c = alpha * the sums of a's and b's products + beta * c, where c is what has the third role.
cudnnStatus_t Enqueue(const Call& call, const Convolution& convolution, const Operand& a, const Operand& b, void* c) {
  if (call.workspace == nullptr || call.bytes < kLeastBytes) return CUDNN_STATUS_BAD_PARAM;
  const auto result = static_cast<Role>(kX + kW + kY - a.role - b.role);
  const auto work = [=, factor = *static_cast<const float*>(call.alpha), kept = *static_cast<const float*>(call.beta)] {
    const auto& tensors = convolution.tensors;
    const std::vector<float> left = Read(tensors[a.role], a.data, convolution.how.math);
    const std::vector<float> right = Read(tensors[b.role], b.data, convolution.how.math);
    std::vector<float> sums(tensors[result].count());
    ForProducts(convolution,
                [&](const std::array<int64_t, 3>& at) { sums[at[result]] += left[at[a.role]] * right[at[b.role]]; });
    Write(tensors[result], factor, sums, kept, c);
  };
  return rubato::cuda::emulation::Enqueue(call.handle->stream, work) == 0 ? CUDNN_STATUS_SUCCESS
                                                                          : CUDNN_STATUS_EXECUTION_FAILED;
}

template <typename Object>
cudnnStatus_t Create(Object** object) {
  *object = new Object();
  return CUDNN_STATUS_SUCCESS;
}

template <typename Object>
cudnnStatus_t Destroy(Object* object) {
  delete object;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t Set(Elements4d* to, cudnnTensorFormat_t format, cudnnDataType_t type, int n, int c, int h, int w) {
  if (format != CUDNN_TENSOR_NCHW || !IsKnown(type)) return CUDNN_STATUS_NOT_SUPPORTED;
  to->type = type;
  to->shape = {n, c, h, w};
  return n > 0 && c > 0 && h > 0 && w > 0 ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

}  // namespace

size_t cudnnGetVersion() { return CUDNN_VERSION; }
const char* cudnnGetErrorString(cudnnStatus_t) { return "an emulated GPU refuses it"; }

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) { return Create(handle); }
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) { return Destroy(handle); }

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* tensor) { return Create(tensor); }
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) { return Destroy(tensor); }

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
  return Set(tensor, format, type, n, c, h, w);
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* filter) { return Create(filter); }
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter) { return Destroy(filter); }

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
  return Set(filter, format, type, k, c, h, w);
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* convolution) {
  return Create(convolution);
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t convolution) {
  return Destroy(convolution);
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convolution, int pad_h, int pad_w, int u,
                                              int v, int dilation_h, int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t type) {
  if (pad_h != pad_w || u != v || dilation_h != 1 || dilation_w != 1 || mode != CUDNN_CROSS_CORRELATION ||
      type != CUDNN_DATA_FLOAT) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  convolution->padding = pad_h;
  convolution->stride = u;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t convolution, cudnnMathType_t type) {
  convolution->math = type;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                      cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t how,
                                                      cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t,
                                                      size_t* bytes) {
  const cudnnStatus_t status = Check({{*x, *w, *y}, *how}, bytes);
  return how->stride == 3 ? CUDNN_STATUS_NOT_SUPPORTED : status;  // As some sizes are on a GPU.
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t, cudnnFilterDescriptor_t w,
                                                           cudnnTensorDescriptor_t dy, cudnnConvolutionDescriptor_t how,
                                                           cudnnTensorDescriptor_t dx, cudnnConvolutionBwdDataAlgo_t,
                                                           size_t* bytes) {
  return Check({{*dx, *w, *dy}, *how}, bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                             cudnnTensorDescriptor_t dy,
                                                             cudnnConvolutionDescriptor_t how,
                                                             cudnnFilterDescriptor_t dw,
                                                             cudnnConvolutionBwdFilterAlgo_t, size_t* bytes) {
  return Check({{*x, *dw, *dy}, *how}, bytes);
}

// Of each pass, some that were asked for before are refused when it comes to it.

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x_shape,
                                      const void* x, cudnnFilterDescriptor_t w_shape, const void* w,
                                      cudnnConvolutionDescriptor_t how, cudnnConvolutionFwdAlgo_t, void* workspace,
                                      size_t bytes, const void* beta, cudnnTensorDescriptor_t y_shape, void* y) {
  if (w_shape->shape[0] == 17) return CUDNN_STATUS_NOT_SUPPORTED;
  return Enqueue({handle, alpha, beta, workspace, bytes}, {{*x_shape, *w_shape, *y_shape}, *how}, {kX, x}, {kW, w}, y);
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha, cudnnFilterDescriptor_t w_shape,
                                           const void* w, cudnnTensorDescriptor_t dy_shape, const void* dy,
                                           cudnnConvolutionDescriptor_t how, cudnnConvolutionBwdDataAlgo_t,
                                           void* workspace, size_t bytes, const void* beta,
                                           cudnnTensorDescriptor_t dx_shape, void* dx) {
  if (w_shape->shape[0] == 32) return CUDNN_STATUS_NOT_SUPPORTED;
  return Enqueue({handle, alpha, beta, workspace, bytes}, {{*dx_shape, *w_shape, *dy_shape}, *how}, {kY, dy}, {kW, w},
                 dx);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x_shape,
                                             const void* x, cudnnTensorDescriptor_t dy_shape, const void* dy,
                                             cudnnConvolutionDescriptor_t how, cudnnConvolutionBwdFilterAlgo_t,
                                             void* workspace, size_t bytes, const void* beta,
                                             cudnnFilterDescriptor_t dw_shape, void* dw) {
  if (dw_shape->shape[1] == 2) return CUDNN_STATUS_NOT_SUPPORTED;
  return Enqueue({handle, alpha, beta, workspace, bytes}, {{*x_shape, *dw_shape, *dy_shape}, *how}, {kX, x}, {kY, dy},
                 dw);
}

#endif
