#include "kernels/cuda/im2col.h"

#include "kernels/cuda/convert.h"
#include "kernels/cuda/launch.h"

namespace rubato::cuda {
namespace {

// The geometry in the form that kernels use.
struct Im2colSizes {
  Im2colSizes(const Conv2dGeometry& g, int64_t images)
      : images(images),
        channels(g.channels),
        height(g.height),
        width(g.width),
        filters(g.filters),
        kernel(g.kernel),
        stride(g.stride),
        padding(g.padding),
        out_height(g.output_height()),
        out_width(g.output_width()) {}

  int64_t images, channels, height, width, filters, kernel, stride, padding, out_height, out_width;
  __host__ __device__ int64_t positions() const { return out_height * out_width; }
  __host__ __device__ int64_t inputs() const { return images * channels * height * width; }
  __host__ __device__ int64_t columns() const { return channels * kernel * kernel * images * positions(); }
};

template <typename T>
__global__ void Im2colKernel(Im2colSizes u, const T* x, T* columns) {
  for (int64_t at = First(); at < u.columns(); at += Stride()) {
    const int64_t ow = at % u.out_width, oh = at / u.out_width % u.out_height;
    const int64_t image = at / u.positions() % u.images, tap = at / (u.positions() * u.images);
    const int64_t j = tap % u.kernel, i = tap / u.kernel % u.kernel, channel = tap / (u.kernel * u.kernel);
    const int64_t h = oh * u.stride + i - u.padding, w = ow * u.stride + j - u.padding;
    const bool inside = h >= 0 && h < u.height && w >= 0 && w < u.width;
    columns[at] = inside ? x[((image * u.channels + channel) * u.height + h) * u.width + w] : ConvertTo<T>(0);
  }
}

template <typename T>
__global__ void FoldKernel(Im2colSizes u, const float* columns, T* dx) {
  for (int64_t at = First(); at < u.inputs(); at += Stride()) {
    const int64_t w = at % u.width, h = at / u.width % u.height;
    const int64_t channel = at / (u.width * u.height) % u.channels, image = at / (u.width * u.height * u.channels);
    float sum = 0;
    for (int64_t i = 0; i < u.kernel; ++i) {
      // Where the tap's row meets this one: oh * stride + i - padding == h.
      const int64_t down = h + u.padding - i;
      if (down < 0 || down % u.stride != 0 || down / u.stride >= u.out_height) continue;
      for (int64_t j = 0; j < u.kernel; ++j) {
        const int64_t right = w + u.padding - j;
        if (right < 0 || right % u.stride != 0 || right / u.stride >= u.out_width) continue;
        const int64_t tap = (channel * u.kernel + i) * u.kernel + j;
        const int64_t position = down / u.stride * u.out_width + right / u.stride;
        sum += columns[(tap * u.images + image) * u.positions() + position];
      }
    }
    dx[at] = ConvertTo<T>(sum);
  }
}

template <typename T>
__global__ void GatherFiltersKernel(Im2colSizes u, const T* dy, T* to) {
  for (int64_t at = First(); at < u.filters * u.images * u.positions(); at += Stride()) {
    const int64_t position = at % u.positions(), image = at / u.positions() % u.images;
    const int64_t filter = at / (u.positions() * u.images);
    to[at] = dy[(image * u.filters + filter) * u.positions() + position];
  }
}

template <typename T>
absl::Status LaunchIm2col(Stream stream, const Im2colSizes& u, const void* x, void* columns) {
  RUBATO_CUDA_LAUNCH(Im2colKernel<T>, Blocks(u.columns()), kThreads, stream, u, static_cast<const T*>(x),
                     static_cast<T*>(columns));
  return absl::OkStatus();
}

template <typename T>
absl::Status LaunchFold(Stream stream, const Im2colSizes& u, const float* columns, void* dx) {
  RUBATO_CUDA_LAUNCH(FoldKernel<T>, Blocks(u.inputs()), kThreads, stream, u, columns, static_cast<T*>(dx));
  return absl::OkStatus();
}

template <typename T>
absl::Status LaunchGather(Stream stream, const Im2colSizes& u, const void* dy, void* to) {
  const int64_t n = u.filters * u.images * u.positions();
  RUBATO_CUDA_LAUNCH(GatherFiltersKernel<T>, Blocks(n), kThreads, stream, u, static_cast<const T*>(dy),
                     static_cast<T*>(to));
  return absl::OkStatus();
}

}  // namespace

absl::Status Im2col(Stream stream, const Conv2dGeometry& geometry, int64_t images, ElementType type, const void* x,
                    void* columns) {
  const Im2colSizes u(geometry, images);
  RUBATO_CUDA_FOR_TYPE(type, LaunchIm2col, stream, u, x, columns);
}

absl::Status Fold(Stream stream, const Conv2dGeometry& geometry, int64_t images, ElementType type, const float* columns,
                  void* dx) {
  const Im2colSizes u(geometry, images);
  RUBATO_CUDA_FOR_TYPE(type, LaunchFold, stream, u, columns, dx);
}

absl::Status GatherFilters(Stream stream, const Conv2dGeometry& geometry, int64_t images, ElementType type,
                           const void* dy, void* to) {
  const Im2colSizes u(geometry, images);
  RUBATO_CUDA_FOR_TYPE(type, LaunchGather, stream, u, dy, to);
}

}  // namespace rubato::cuda
