#ifndef RUBATO_KERNELS_CUDA_ATTENTION_TILES_H_
#define RUBATO_KERNELS_CUDA_ATTENTION_TILES_H_

#include <cstdint>

#include "kernels/cuda/tensor_core.h"

// What fused attention computes with: a warp has 16 rows of a head in fragments, a block of threads has a tile of other
// rows in shared memory. For .cu.cc files alone.
namespace rubato::cuda {

inline constexpr int kWarpRows = 16;
inline constexpr int kAttentionWarps = 4;
inline constexpr int kAttentionThreads = 32 * kAttentionWarps;
// Rows that a block of threads works for.
inline constexpr int kBlockRows = kWarpRows * kAttentionWarps;

// The rows of one head in one example, `stride` elements from one to the next.
template <typename Element>
struct HeadRows {
  Element* data;
  int64_t stride, count;
};

__device__ inline int Lane() { return static_cast<int>(threadIdx.x) % 32; }
// The first of the warp's rows in its block.
__device__ inline int WarpRow() { return static_cast<int>(threadIdx.x) / 32 * kWarpRows; }

// Rows of T in shared memory, eight elements to a uint4; the 8 elements after each row let eight rows be read at a
// time, for they begin in other banks.
template <typename T, int kRows, int kWidth>
struct Tile {
  static constexpr int kStride = kWidth / 8 + 1;
  // Of an element in a column that is a multiple of 8.
  __device__ uint4* at(int row, int column) { return octets + row * kStride + column / 8; }
  __device__ const uint4* at(int row, int column) const { return octets + row * kStride + column / 8; }

  uint4 octets[kRows * kStride];
};

// Rows from `first` on; after the last there are zeros.
template <typename T, int kRows, int kWidth>
__device__ void LoadTile(const HeadRows<const T>& from, int64_t first, Tile<T, kRows, kWidth>& to) {
  constexpr int kOctets = kWidth / 8;
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kOctets; i += kAttentionThreads) {
    const int row = i / kOctets, column = i % kOctets * 8;
    uint4 octet = {0, 0, 0, 0};
    if (first + row < from.count) {
      octet = *reinterpret_cast<const uint4*>(from.data + (first + row) * from.stride + column);
    }
    *to.at(row, column) = octet;
  }
}

// The warp's rows, 16 columns to a fragment.
template <int kWidth>
struct RowFragments {
  LeftFragment columns[kWidth / 16];
};

template <typename T>
__device__ inline uint32_t LoadPair(const HeadRows<const T>& from, int64_t row, int column) {
  return row < from.count ? *reinterpret_cast<const uint32_t*>(from.data + row * from.stride + column) : 0;
}

template <typename T, int kWidth>
__device__ void LoadRows(const HeadRows<const T>& from, int64_t first, RowFragments<kWidth>& to) {
  const int64_t row = first + Lane() / 4;
#pragma unroll
  for (int i = 0; i < kWidth / 16; ++i) {
    const int column = i * 16 + Lane() % 4 * 2;
    to.columns[i] = {LoadPair(from, row, column), LoadPair(from, row + 8, column), LoadPair(from, row, column + 8),
                     LoadPair(from, row + 8, column + 8)};
  }
}

// Sums for the warp's rows and kColumns columns, 8 columns to a fragment. A lane has parts of two rows: values 0 and 1
// of a fragment are of row lane / 4, values 2 and 3 of the row 8 after it.
template <int kColumns>
struct RowSums {
  SumFragment columns[kColumns / 8];
};

template <int kColumns>
__device__ void Clear(RowSums<kColumns>& sums) {
#pragma unroll
  for (int i = 0; i < kColumns / 8; ++i) sums.columns[i] = {0, 0, 0, 0};
}

// products [16, kRows] = rows [16, kWidth] * tile^T.
template <typename T, int kRows, int kWidth>
__device__ void MultiplyByTile(const RowFragments<kWidth>& rows, const Tile<T, kRows, kWidth>& tile,
                               RowSums<kRows>& products) {
  Clear(products);
  const int lane = Lane(), matrix = lane / 8;
  const int first_row = matrix / 2 * 8 + lane % 8, first_column = matrix % 2 * 8;
#pragma unroll
  for (int step = 0; step < kWidth / 16; ++step) {
#pragma unroll
    for (int row = 0; row < kRows; row += 16) {
      uint32_t pairs[4];
      LoadMatrices(tile.at(row + first_row, step * 16 + first_column), false, pairs);
      MultiplyAdd<T>(rows.columns[step], {pairs[0], pairs[1]}, products.columns[row / 8]);
      MultiplyAdd<T>(rows.columns[step], {pairs[2], pairs[3]}, products.columns[row / 8 + 1]);
    }
  }
}

// sums [16, kWidth] += factors [16, kRows], rounded to T, * tile.
template <typename T, int kRows, int kWidth>
__device__ void AddProduct(const RowSums<kRows>& factors, const Tile<T, kRows, kWidth>& tile, RowSums<kWidth>& sums) {
  const int lane = Lane(), matrix = lane / 8;
  const int first_row = matrix % 2 * 8 + lane % 8, first_column = matrix / 2 * 8;
#pragma unroll
  for (int row = 0; row < kRows; row += 16) {
    const SumFragment &left = factors.columns[row / 8], &right = factors.columns[row / 8 + 1];
    const LeftFragment rounded = {Pair<T>(left.values[0], left.values[1]), Pair<T>(left.values[2], left.values[3]),
                                  Pair<T>(right.values[0], right.values[1]), Pair<T>(right.values[2], right.values[3])};
#pragma unroll
    for (int column = 0; column < kWidth; column += 16) {
      uint32_t pairs[4];
      LoadMatrices(tile.at(row + first_row, column + first_column), true, pairs);
      MultiplyAdd<T>(rounded, {pairs[0], pairs[1]}, sums.columns[column / 8]);
      MultiplyAdd<T>(rounded, {pairs[2], pairs[3]}, sums.columns[column / 8 + 1]);
    }
  }
}

// The sums times a factor for each of the lane's two rows, to the warp's rows.
template <typename T, int kWidth>
__device__ void StoreRows(const RowSums<kWidth>& sums, const float (&factors)[2], int64_t first,
                          const HeadRows<T>& to) {
  for (int half = 0; half < 2; ++half) {
    const int64_t row = first + Lane() / 4 + half * 8;
    if (row >= to.count) continue;
#pragma unroll
    for (int i = 0; i < kWidth / 8; ++i) {
      const float* const values = sums.columns[i].values + half * 2;
      *reinterpret_cast<uint32_t*>(to.data + row * to.stride + i * 8 + Lane() % 4 * 2) =
          Pair<T>(values[0] * factors[half], values[1] * factors[half]);
    }
  }
}

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_ATTENTION_TILES_H_
