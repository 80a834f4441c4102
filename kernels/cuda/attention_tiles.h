#ifndef RUBATO_KERNELS_CUDA_ATTENTION_TILES_H_
#define RUBATO_KERNELS_CUDA_ATTENTION_TILES_H_

#include <cstdint>

#include "kernels/cuda/async_copy.h"
#include "kernels/cuda/tensor_core.h"

// What fused attention computes with: a warp has rows of a head in fragments, kParts times 16 of them, a block of
// threads has a tile of other rows in shared memory. Each fragment of a tile is read once for all parts: shared memory
// delivers fewer of them than tensor cores take. For .cu.cc files alone.
namespace rubato::cuda {

inline constexpr int kPartRows = 16;
inline constexpr int kAttentionWarps = 4;
inline constexpr int kAttentionThreads = 32 * kAttentionWarps;
// Rows that a block of threads works for.
template <int kParts>
inline constexpr int kBlockRows = kPartRows* kParts* kAttentionWarps;

// The rows of one head in one example, `stride` elements from one to the next.
template <typename Element>
struct HeadRows {
  __device__ Element* at(int row, int column) const { return data + static_cast<int64_t>(row) * stride + column; }

  Element* data;
  int stride;
  int count;
};

__device__ inline int Lane() { return static_cast<int>(threadIdx.x) % 32; }
// The first of the warp's rows in its block.
template <int kParts>
__device__ inline int WarpRow() {
  return static_cast<int>(threadIdx.x) / 32 * kPartRows * kParts;
}
// Where in its warp's rows a lane has one of its two of a part.
__device__ inline int LaneRow(int part, int half) { return part * kPartRows + half * 8 + Lane() / 4; }
// The first of two columns next to each other that a lane has of eight.
__device__ inline int LaneColumn() { return Lane() % 4 * 2; }

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

// Rows from `first` on, of which there is at least one, by all threads of the block; after the last there are zeros.
// They are there once all threads have waited for their copies and then for each other.
template <typename T, int kRows, int kWidth>
__device__ void CopyTile(const HeadRows<const T>& from, int first, Tile<T, kRows, kWidth>& to) {
  constexpr int kOctets = kWidth / 8, kRowsAtOnce = kAttentionThreads / kOctets;
  const int thread = static_cast<int>(threadIdx.x), thread_row = thread / kOctets, column = thread % kOctets * 8;
  const T* const rows = from.at(first, 0);
#pragma unroll
  for (int begin = 0; begin < kRows; begin += kRowsAtOnce) {
    const int row = begin + thread_row;
    if (row >= kRows) return;
    const bool exists = first + row < from.count;
    CopyAsync<16>(rows + ((exists ? row * from.stride : 0) + column), exists, to.at(row, column));
  }
}

// The warp's rows, 16 columns to a fragment.
template <int kParts, int kWidth>
struct RowFragments {
  LeftFragment columns[kParts][kWidth / 16];
};

template <typename T>
__device__ inline uint32_t LoadPair(const HeadRows<const T>& from, int row, int column) {
  return row < from.count ? *reinterpret_cast<const uint32_t*>(from.at(row, column)) : 0;
}

template <typename T, int kParts, int kWidth>
__device__ void LoadRows(const HeadRows<const T>& from, int first, RowFragments<kParts, kWidth>& to) {
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    const int upper = first + LaneRow(part, 0), lower = first + LaneRow(part, 1);
#pragma unroll
    for (int i = 0; i < kWidth / 16; ++i) {
      const int left = i * 16 + LaneColumn(), right = left + 8;
      to.columns[part][i] = {LoadPair(from, upper, left), LoadPair(from, lower, left), LoadPair(from, upper, right),
                             LoadPair(from, lower, right)};
    }
  }
}

// What the lane has of the dot products of the warp's rows and others: the row's is the sum over the four lanes that
// have parts of it.
template <typename T, int kParts, int kWidth>
__device__ void DotRows(const RowFragments<kParts, kWidth>& rows, const HeadRows<const T>& others, int first,
                        float (&dots)[kParts][2]) {
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first + LaneRow(part, half);
      float dot = 0;
#pragma unroll
      for (int i = 0; i < kWidth / 16; ++i) {
        const uint32_t* const pairs = rows.columns[part][i].pairs;
        const int column = i * 16 + LaneColumn();
        dot += Dot<T>(pairs[half], LoadPair(others, row, column));
        dot += Dot<T>(pairs[half + 2], LoadPair(others, row, column + 8));
      }
      dots[part][half] = dot;
    }
  }
}

// Sums for the warp's rows and kColumns columns, 8 columns to a fragment, whose values 0 and 1 are of the upper of the
// lane's rows, values 2 and 3 of the lower.
template <int kParts, int kColumns>
struct RowSums {
  SumFragment columns[kParts][kColumns / 8];
};

// Calls function(part, half, column, values...) for each value that the lane has of the sums.
template <typename Function, int kParts, int kColumns, typename... More>
__device__ inline void ForEach(const Function& function, RowSums<kParts, kColumns>& sums, More&... more) {
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
#pragma unroll
    for (int i = 0; i < kColumns / 8; ++i) {
#pragma unroll
      for (int at = 0; at < 4; ++at) {
        function(part, at / 2, i * 8 + LaneColumn() + at % 2, sums.columns[part][i].values[at],
                 more.columns[part][i].values[at]...);
      }
    }
  }
}

template <int kParts, int kColumns>
__device__ inline void Clear(RowSums<kParts, kColumns>& sums) {
  ForEach([](int, int, int, float& sum) { sum = 0; }, sums);
}

// products [16 * kParts, kColumns] = rows [16 * kParts, kWidth] * tile^T, of which kColumns rows from `first` on.
template <typename T, int kParts, int kColumns, int kRows, int kWidth>
__device__ void MultiplyByTile(const RowFragments<kParts, kWidth>& rows, const Tile<T, kRows, kWidth>& tile, int first,
                               RowSums<kParts, kColumns>& products) {
  Clear(products);
  const int lane = Lane(), matrix = lane / 8;
  const int lane_row = first + matrix / 2 * 8 + lane % 8, lane_column = matrix % 2 * 8;
#pragma unroll
  for (int step = 0; step < kWidth / 16; ++step) {
#pragma unroll
    for (int row = 0; row < kColumns; row += 16) {
      uint32_t pairs[4];
      LoadMatrices(tile.at(row + lane_row, step * 16 + lane_column), false, pairs);
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        SumFragment* const sums = &products.columns[part][row / 8];
        MultiplyAdd<T>(rows.columns[part][step], {pairs[0], pairs[1]}, sums[0]);
        MultiplyAdd<T>(rows.columns[part][step], {pairs[2], pairs[3]}, sums[1]);
      }
    }
  }
}

// sums [16 * kParts, kWidth] += factors [16 * kParts, kColumns], rounded to T, * kColumns rows of tile from `first` on.
template <typename T, int kParts, int kColumns, int kRows, int kWidth>
__device__ void AddProduct(const RowSums<kParts, kColumns>& factors, const Tile<T, kRows, kWidth>& tile, int first,
                           RowSums<kParts, kWidth>& sums) {
  const int lane = Lane(), matrix = lane / 8;
  const int lane_row = first + matrix % 2 * 8 + lane % 8, lane_column = matrix / 2 * 8;
#pragma unroll
  for (int row = 0; row < kColumns; row += 16) {
    LeftFragment rounded[kParts];
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      const SumFragment *const left = &factors.columns[part][row / 8], *const right = left + 1;
      rounded[part] = {Pair<T>(left->values[0], left->values[1]), Pair<T>(left->values[2], left->values[3]),
                       Pair<T>(right->values[0], right->values[1]), Pair<T>(right->values[2], right->values[3])};
    }
#pragma unroll
    for (int column = 0; column < kWidth; column += 16) {
      uint32_t pairs[4];
      LoadMatrices(tile.at(row + lane_row, column + lane_column), true, pairs);
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        MultiplyAdd<T>(rounded[part], {pairs[0], pairs[1]}, sums.columns[part][column / 8]);
        MultiplyAdd<T>(rounded[part], {pairs[2], pairs[3]}, sums.columns[part][column / 8 + 1]);
      }
    }
  }
}

// The sums times a factor for each of the lane's rows, to the warp's rows.
template <typename T, int kParts, int kWidth>
__device__ void StoreRows(const RowSums<kParts, kWidth>& sums, const float (&factors)[kParts][2], int first,
                          const HeadRows<T>& to) {
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first + LaneRow(part, half);
      if (row >= to.count) continue;
      const float factor = factors[part][half];
#pragma unroll
      for (int i = 0; i < kWidth / 8; ++i) {
        const float* const values = sums.columns[part][i].values + half * 2;
        *reinterpret_cast<uint32_t*>(to.at(row, i * 8 + LaneColumn())) =
            Pair<T>(values[0] * factor, values[1] * factor);
      }
    }
  }
}

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_ATTENTION_TILES_H_
