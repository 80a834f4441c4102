#ifndef RUBATO_KERNELS_CUDA_EMULATION_INCLUDE_CUB_DEVICE_DEVICE_RADIX_SORT_CUH_
#define RUBATO_KERNELS_CUDA_EMULATION_INCLUDE_CUB_DEVICE_DEVICE_RADIX_SORT_CUH_

// The sorts of CUB that the kernels use, on an emulated GPU. All bits of a key count.

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "kernels/cuda/emulation/gpu.h"

namespace cub {

class DeviceRadixSort {
 public:
  template <typename Key, typename Value>
  static cudaError_t SortPairs(void* storage, size_t& bytes, const Key* keys, Key* sorted, const Value* values,
                               Value* sorted_values, int n, int, int, cudaStream_t stream) {
    if (!HasStorage(storage, bytes)) return cudaSuccess;
    return Enqueue(stream, [=] { Sort(keys, sorted, values, sorted_values, n, [](Key a, Key b) { return a < b; }); });
  }
  template <typename Key, typename Value>
  static cudaError_t SortPairsDescending(void* storage, size_t& bytes, const Key* keys, Key* sorted,
                                         const Value* values, Value* sorted_values, int n, int, int,
                                         cudaStream_t stream) {
    if (!HasStorage(storage, bytes)) return cudaSuccess;
    return Enqueue(stream, [=] { Sort(keys, sorted, values, sorted_values, n, [](Key a, Key b) { return a > b; }); });
  }
  template <typename Key>
  static cudaError_t SortKeys(void* storage, size_t& bytes, const Key* keys, Key* sorted, int n, int, int,
                              cudaStream_t stream) {
    if (!HasStorage(storage, bytes)) return cudaSuccess;
    return Enqueue(stream, [=] {
      std::copy_n(keys, n, sorted);
      std::sort(sorted, sorted + n);
    });
  }

 private:
  static bool HasStorage(const void* storage, size_t& bytes) {
    if (storage == nullptr) bytes = 1;
    return storage != nullptr;
  }
  template <typename Work>
  static cudaError_t Enqueue(cudaStream_t stream, Work work) {
    return static_cast<cudaError_t>(rubato::cuda::emulation::Enqueue(stream, work));
  }
  template <typename Key, typename Value, typename Before>
  static void Sort(const Key* keys, Key* sorted, const Value* values, Value* sorted_values, int n, Before before) {
    std::vector<int> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return before(keys[a], keys[b]); });
    for (int i = 0; i < n; ++i) {
      sorted[i] = keys[order[i]];
      sorted_values[i] = values[order[i]];
    }
  }
};

}  // namespace cub

#endif  // RUBATO_KERNELS_CUDA_EMULATION_INCLUDE_CUB_DEVICE_DEVICE_RADIX_SORT_CUH_
