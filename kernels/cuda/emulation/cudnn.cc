// The functions of cuDNN that the backend calls, on an emulated card: convolutions of float32 images in NCHW order.

#if __has_include(<cudnn.h>)

#include <cudnn.h>

#include <array>
#include <cstdint>

#include "kernels/cuda/emulation/card.h"
#include "kernels/cuda/emulation/round_to_tf32.h"

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

struct cudnnTensorStruct {
  std::array<int64_t, 4> shape = {};
};

struct cudnnFilterStruct {
  std::array<int64_t, 4> shape = {};
};

struct cudnnConvolutionStruct {
  int64_t padding = 0, stride = 1;
  bool tf32 = true;
};

namespace {

// So that nobody does without; and in one case more than anybody has.
constexpr size_t kLeastBytes = 1000;
size_t WorkspaceBytes(const cudnnFilterStruct& w) { return w.shape[2] == 5 ? size_t{1} << 40 : kLeastBytes; }

// Whether y has the shape of x convolved with w.
bool Fit(const cudnnTensorStruct& x, const cudnnFilterStruct& w, const cudnnConvolutionStruct& c,
         const cudnnTensorStruct& y) {
  const auto positions = [&](int i) { return (x.shape[i] + 2 * c.padding - w.shape[i]) / c.stride + 1; };
  return x.shape[1] == w.shape[1] &&
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

// What was there before is not looked at where it does not count: it may be anything.
void Keep(float kept, int64_t n, float* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = kept == 0 ? 0 : kept * to[i];
}

// Enqueues work(factor, kept, round): c = factor * products + kept * c, inputs rounded by `round`.
template <typename Work>
cudnnStatus_t Enqueue(cudnnHandle_t handle, const void* alpha, const void* beta, bool tf32, void* workspace,
                      size_t bytes, const Work& work) {
  if (workspace == nullptr || bytes < kLeastBytes) return CUDNN_STATUS_BAD_PARAM;
  const int error = rubato::cuda::emulation::Enqueue(
      handle->stream, [=, factor = *static_cast<const float*>(alpha), kept = *static_cast<const float*>(beta)] {
        work(factor, kept,
             [tf32](float element) { return tf32 ? rubato::cuda::emulation::RoundToTf32(element) : element; });
      });
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
  if (format != CUDNN_TENSOR_NCHW || type != CUDNN_DATA_FLOAT) return CUDNN_STATUS_NOT_SUPPORTED;
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
  if (format != CUDNN_TENSOR_NCHW || type != CUDNN_DATA_FLOAT) return CUDNN_STATUS_NOT_SUPPORTED;
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
  convolution->tf32 = type != CUDNN_FMA_MATH;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                      cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t c,
                                                      cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t,
                                                      size_t* bytes) {
  *bytes = WorkspaceBytes(*w);
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
  return Enqueue(handle, alpha, beta, c->tf32, workspace, bytes,
                 [=, xs = *x_shape, ws = *w_shape, c = *c, ys = *y_shape](float factor, float kept, auto round) {
                   const auto *from = static_cast<const float*>(x), *weight = static_cast<const float*>(w);
                   auto* to = static_cast<float*>(y);
                   Keep(kept, Elements(ys), to);
                   ForProducts(xs, ws, c, ys, [&](int64_t at_x, int64_t at_w, int64_t at_y) {
                     to[at_y] += factor * round(from[at_x]) * round(weight[at_w]);
                   });
                 });
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha, cudnnFilterDescriptor_t w_shape,
                                           const void* w, cudnnTensorDescriptor_t dy_shape, const void* dy,
                                           cudnnConvolutionDescriptor_t c, cudnnConvolutionBwdDataAlgo_t,
                                           void* workspace, size_t bytes, const void* beta,
                                           cudnnTensorDescriptor_t dx_shape, void* dx) {
  return Enqueue(handle, alpha, beta, c->tf32, workspace, bytes,
                 [=, xs = *dx_shape, ws = *w_shape, c = *c, ys = *dy_shape](float factor, float kept, auto round) {
                   const auto *from = static_cast<const float*>(dy), *weight = static_cast<const float*>(w);
                   auto* to = static_cast<float*>(dx);
                   Keep(kept, Elements(xs), to);
                   ForProducts(xs, ws, c, ys, [&](int64_t at_x, int64_t at_w, int64_t at_y) {
                     to[at_x] += factor * round(from[at_y]) * round(weight[at_w]);
                   });
                 });
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x_shape,
                                             const void* x, cudnnTensorDescriptor_t dy_shape, const void* dy,
                                             cudnnConvolutionDescriptor_t c, cudnnConvolutionBwdFilterAlgo_t,
                                             void* workspace, size_t bytes, const void* beta,
                                             cudnnFilterDescriptor_t dw_shape, void* dw) {
  return Enqueue(handle, alpha, beta, c->tf32, workspace, bytes,
                 [=, xs = *x_shape, ws = *dw_shape, c = *c, ys = *dy_shape](float factor, float kept, auto round) {
                   const auto *image = static_cast<const float*>(x), *from = static_cast<const float*>(dy);
                   auto* to = static_cast<float*>(dw);
                   Keep(kept, Elements(ws), to);
                   ForProducts(xs, ws, c, ys, [&](int64_t at_x, int64_t at_w, int64_t at_y) {
                     to[at_w] += factor * round(image[at_x]) * round(from[at_y]);
                   });
                 });
}

#endif
