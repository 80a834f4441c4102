#include "kernels/cuda/embedding.h"

#include <cub/device/device_radix_sort.cuh>

#include "kernels/cuda/convert.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/launch.h"

namespace rubato::cuda {
namespace {

template <typename T>
__global__ void EmbedKernel(const float* table, int64_t width, const int32_t* indices, int64_t n, T* y) {
  for (int64_t i = First(); i < n * width; i += Stride()) {
    y[i] = ConvertTo<T>(table[indices[i / width] * width + i % width]);
  }
}

__global__ void CountUp(int64_t n, int32_t* numbers) {
  for (int64_t i = First(); i < n; i += Stride()) numbers[i] = static_cast<int32_t>(i);
}

// Where the indices that are equal to sorted[begin] end.
__device__ inline int64_t EndOfRun(const int32_t* sorted, int64_t begin, int64_t n) {
  int64_t low = begin + 1, high = n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (sorted[middle] == sorted[begin]) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// `sorted` indices, and the rows of dy that they come from: the first of equal ones adds all of their rows.
template <typename T>
__global__ void AddRuns(const int32_t* sorted, const int32_t* rows, int64_t n, const T* dy, int64_t width,
                        float* dtable) {
  for (int64_t at = First(); at < n * width; at += Stride()) {
    const int64_t begin = at / width, column = at % width;
    const int32_t index = sorted[begin];
    if (begin > 0 && sorted[begin - 1] == index) continue;
    const int64_t end = EndOfRun(sorted, begin, n);
    float sum = dtable[index * width + column];
#pragma unroll 8
    for (int64_t i = begin; i < end; ++i) sum += ToFloat(dy[rows[i] * width + column]);
    dtable[index * width + column] = sum;
  }
}

template <typename T>
absl::Status LaunchEmbed(Stream stream, const float* table, int64_t width, const int32_t* indices, int64_t n, void* y) {
  RUBATO_CUDA_LAUNCH(EmbedKernel<T>, Blocks(n * width), kThreads, stream, table, width, indices, n, static_cast<T*>(y));
  return absl::OkStatus();
}

template <typename T>
absl::Status LaunchAddRuns(Stream stream, const int32_t* sorted, const int32_t* rows, int64_t n, const void* dy,
                           int64_t width, float* dtable) {
  RUBATO_CUDA_LAUNCH(AddRuns<T>, Blocks(n * width), kThreads, stream, sorted, rows, n, static_cast<const T*>(dy), width,
                     dtable);
  return absl::OkStatus();
}

}  // namespace

absl::Status Embed(Stream stream, const float* table, int64_t width, const int32_t* indices, int64_t n,
                   ElementType type, void* y) {
  RUBATO_CUDA_FOR_TYPE(type, LaunchEmbed, stream, table, width, indices, n, y);
}

absl::Status EmbedBackward(Work& work, const int32_t* indices, int64_t n, ElementType type, const void* dy,
                           int64_t entries, int64_t width, bool accumulate, float* dtable) {
  if (!accumulate) {
    RUBATO_RETURN_IF_ERROR(Fill(work.stream(), ElementType::kFloat32, 0, entries * width, dtable));
  }
  if (n == 0) return absl::OkStatus();
  RUBATO_ASSIGN_OR_RETURN(int32_t * rows, work.Scratch<int32_t>(n));
  RUBATO_ASSIGN_OR_RETURN(int32_t * sorted, work.Scratch<int32_t>(n));
  RUBATO_ASSIGN_OR_RETURN(int32_t * sorted_rows, work.Scratch<int32_t>(n));
  RUBATO_CUDA_LAUNCH(CountUp, Blocks(n), kThreads, work.stream(), n, rows);
  // A radix sort keeps the order of equal ones.
  const int items = static_cast<int>(n), bits = 32;
  size_t bytes = 0;
  RUBATO_CUDA_RETURN_IF_ERROR(cub::DeviceRadixSort::SortPairs(nullptr, bytes, indices, sorted, rows, sorted_rows, items,
                                                              0, bits, work.stream()));
  RUBATO_ASSIGN_OR_RETURN(char* storage, work.Scratch<char>(static_cast<int64_t>(bytes)));
  RUBATO_CUDA_RETURN_IF_ERROR(cub::DeviceRadixSort::SortPairs(storage, bytes, indices, sorted, rows, sorted_rows, items,
                                                              0, bits, work.stream()));
  RUBATO_CUDA_FOR_TYPE(type, LaunchAddRuns, work.stream(), sorted, sorted_rows, n, dy, width, dtable);
}

}  // namespace rubato::cuda
