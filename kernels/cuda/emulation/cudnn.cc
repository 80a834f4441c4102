// The functions of cuDNN that the backend calls, on an emulated card: convolutions of images in NCHW order.

#if __has_include(<cudnn.h>)

#include <cudnn.h>

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/cuda/emulation/card.h"
#include "kernels/cuda/emulation/host_product.h"

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

struct cudnnTensorStruct {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::array<int64_t, 4> shape = {};
};

struct cudnnFilterStruct {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::array<int64_t, 4> shape = {};
};

struct cudnnConvolutionStruct {
  int64_t padding = 0, stride = 1;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};

namespace {

// So that nobody does without; and in one case more than anybody has.
constexpr size_t kLeastBytes = 1000;
size_t WorkspaceBytes(const cudnnFilterStruct& w) { return w.shape[2] == 5 ? size_t{1} << 40 : kLeastBytes; }

// Whether y has the shape of x convolved with w.
bool Fit(const cudnnTensorStruct& x, const cudnnFilterStruct& w, const cudnnConvolutionStruct& c,
         const cudnnTensorStruct& y) {
  const auto positions = [&](int i) { return (x.shape[i] + 2 * c.padding - w.shape[i]) / c.stride + 1; };
  return x.type == w.type && x.type == y.type && x.shape[1] == w.shape[1] &&
         y.shape == std::array<int64_t, 4>{x.shape[0], w.shape[0], positions(2), positions(3)};
}

// Calls use(element of x, element of w, element of y) for every product of a convolution, those of the padding left
// out.
template <typename Use>
void ForProducts(const cudnnTensorStruct& x, const cudnnFilterStruct& w, const cudnnConvolutionStruct& c,
                 const cudnnTensorStruct& y, const Use& use) {
  const auto& [filters, channels, rows, columns] = w.shape;
  int64_t to = 0;
  for (int64_t image = 0; image < y.shape[0]; ++image) {
    for (int64_t filter = 0; filter < filters; ++filter) {
      for (int64_t oh = 0; oh < y.shape[2]; ++oh) {
        for (int64_t ow = 0; ow < y.shape[3]; ++ow, ++to) {
          for (int64_t at = 0; at < channels * rows * columns; ++at) {
            const int64_t channel = at / (rows * columns), i = at / columns % rows, j = at % columns;
            const int64_t h = oh * c.stride + i - c.padding, v = ow * c.stride + j - c.padding;
            if (h < 0 || h >= x.shape[2] || v < 0 || v >= x.shape[3]) continue;
            use(((image * channels + channel) * x.shape[2] + h) * x.shape[3] + v,
                filter * channels * rows * columns + at, to);
          }
        }
      }
    }
  }
}

template <typename Tensor>
int64_t Elements(const Tensor& tensor) {
  return tensor.shape[0] * tensor.shape[1] * tensor.shape[2] * tensor.shape[3];
}

bool IsKnown(cudnnDataType_t type) {
  return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_BFLOAT16 || type == CUDNN_DATA_HALF;
}

cudaDataType_t DataType(cudnnDataType_t type) {
  if (type == CUDNN_DATA_BFLOAT16) return CUDA_R_16BF;
  return type == CUDNN_DATA_HALF ? CUDA_R_16F : CUDA_R_32F;
}

// The elements of a tensor or a filter, as products take them.
template <typename Tensor>
std::vector<float> Read(const Tensor& tensor, const void* data, cudnnMathType_t math) {
  std::vector<float> elements(Elements(tensor));
  for (size_t i = 0; i < elements.size(); ++i) {
    elements[i] = rubato::cuda::emulation::Element(DataType(tensor.type), data, static_cast<int64_t>(i));
    if (math != CUDNN_FMA_MATH && tensor.type == CUDNN_DATA_FLOAT) {
      elements[i] = rubato::cuda::emulation::RoundToTf32(elements[i]);
    }
  }
  return elements;
}

// What was there before is not looked at where it does not count: it may be anything.
template <typename Tensor>
void Write(const Tensor& tensor, float factor, const std::vector<float>& sums, float kept, void* data) {
  const cudaDataType_t type = DataType(tensor.type);
  for (size_t i = 0; i < sums.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const float before = kept == 0 ? 0 : kept * rubato::cuda::emulation::Element(type, data, at);
    rubato::cuda::emulation::SetElement(type, data, at, factor * sums[i] + before);
  }
}

// Enqueues work(factor, kept): c = factor * products + kept * c.
template <typename Work>
cudnnStatus_t Enqueue(cudnnHandle_t handle, const void* alpha, const void* beta, void* workspace, size_t bytes,
                      const Work& work) {
  if (workspace == nullptr || bytes < kLeastBytes) return CUDNN_STATUS_BAD_PARAM;
  const int error = rubato::cuda::emulation::Enqueue(
      handle->stream,
      [=, factor = *static_cast<const float*>(alpha), kept = *static_cast<const float*>(beta)] { work(factor, kept); });
  return error == 0 ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

}  // namespace

size_t cudnnGetVersion() { return CUDNN_VERSION; }
const char* cudnnGetErrorString(cudnnStatus_t) { return "an emulated card refuses it"; }

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = new cudnnContext();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* tensor) {
  *tensor = new cudnnTensorStruct();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) {
  delete tensor;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
  if (format != CUDNN_TENSOR_NCHW || !IsKnown(type)) return CUDNN_STATUS_NOT_SUPPORTED;
  tensor->type = type;
  tensor->shape = {n, c, h, w};
  return n > 0 && c > 0 && h > 0 && w > 0 ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* filter) {
  *filter = new cudnnFilterStruct();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter) {
  delete filter;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
  if (format != CUDNN_TENSOR_NCHW || !IsKnown(type)) return CUDNN_STATUS_NOT_SUPPORTED;
  filter->type = type;
  filter->shape = {k, c, h, w};
  return k > 0 && c > 0 && h > 0 && w > 0 ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* convolution) {
  *convolution = new cudnnConvolutionStruct();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t convolution) {
  delete convolution;
  return CUDNN_STATUS_SUCCESS;
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
                                                      cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t c,
                                                      cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t,
                                                      size_t* bytes) {
  *bytes = WorkspaceBytes(*w);
  if (c->stride == 3) return CUDNN_STATUS_NOT_SUPPORTED;  // As some sizes are on a card.
  return Fit(*x, *w, *c, *y) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t, cudnnFilterDescriptor_t w,
                                                           cudnnTensorDescriptor_t dy, cudnnConvolutionDescriptor_t c,
                                                           cudnnTensorDescriptor_t dx, cudnnConvolutionBwdDataAlgo_t,
                                                           size_t* bytes) {
  *bytes = WorkspaceBytes(*w);
  return Fit(*dx, *w, *c, *dy) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                             cudnnTensorDescriptor_t dy, cudnnConvolutionDescriptor_t c,
                                                             cudnnFilterDescriptor_t dw,
                                                             cudnnConvolutionBwdFilterAlgo_t, size_t* bytes) {
  *bytes = WorkspaceBytes(*dw);
  return Fit(*x, *dw, *c, *dy) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x_shape,
                                      const void* x, cudnnFilterDescriptor_t w_shape, const void* w,
                                      cudnnConvolutionDescriptor_t c, cudnnConvolutionFwdAlgo_t, void* workspace,
                                      size_t bytes, const void* beta, cudnnTensorDescriptor_t y_shape, void* y) {
  if (w_shape->shape[0] == 17) return CUDNN_STATUS_NOT_SUPPORTED;  // Some that were asked for before.
  return Enqueue(handle, alpha, beta, workspace, bytes,
                 [=, xs = *x_shape, ws = *w_shape, c = *c, ys = *y_shape](float factor, float kept) {
                   const std::vector<float> from = Read(xs, x, c.math), weight = Read(ws, w, c.math);
                   std::vector<float> sums(Elements(ys));
                   ForProducts(xs, ws, c, ys, [&](int64_t at_x, int64_t at_w, int64_t at_y) {
                     sums[at_y] += from[at_x] * weight[at_w];
                   });
                   Write(ys, factor, sums, kept, y);
                 });
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha, cudnnFilterDescriptor_t w_shape,
                                           const void* w, cudnnTensorDescriptor_t dy_shape, const void* dy,
                                           cudnnConvolutionDescriptor_t c, cudnnConvolutionBwdDataAlgo_t,
                                           void* workspace, size_t bytes, const void* beta,
                                           cudnnTensorDescriptor_t dx_shape, void* dx) {
  if (w_shape->shape[0] == 32) return CUDNN_STATUS_NOT_SUPPORTED;  // Some that were asked for before.
  return Enqueue(handle, alpha, beta, workspace, bytes,
                 [=, xs = *dx_shape, ws = *w_shape, c = *c, ys = *dy_shape](float factor, float kept) {
                   const std::vector<float> from = Read(ys, dy, c.math), weight = Read(ws, w, c.math);
                   std::vector<float> sums(Elements(xs));
                   ForProducts(xs, ws, c, ys, [&](int64_t at_x, int64_t at_w, int64_t at_y) {
                     sums[at_x] += from[at_y] * weight[at_w];
                   });
                   Write(xs, factor, sums, kept, dx);
                 });
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x_shape,
                                             const void* x, cudnnTensorDescriptor_t dy_shape, const void* dy,
                                             cudnnConvolutionDescriptor_t c, cudnnConvolutionBwdFilterAlgo_t,
                                             void* workspace, size_t bytes, const void* beta,
                                             cudnnFilterDescriptor_t dw_shape, void* dw) {
  if (dw_shape->shape[1] == 2) return CUDNN_STATUS_NOT_SUPPORTED;  // Some that were asked for before.
  return Enqueue(handle, alpha, beta, workspace, bytes,
                 [=, xs = *x_shape, ws = *dw_shape, c = *c, ys = *dy_shape](float factor, float kept) {
                   const std::vector<float> image = Read(xs, x, c.math), from = Read(ys, dy, c.math);
                   std::vector<float> sums(Elements(ws));
                   ForProducts(xs, ws, c, ys, [&](int64_t at_x, int64_t at_w, int64_t at_y) {
                     sums[at_w] += image[at_x] * from[at_y];
                   });
                   Write(ws, factor, sums, kept, dw);
                 });
}

#endif
