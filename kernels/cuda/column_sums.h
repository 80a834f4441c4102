#ifndef RUBATO_KERNELS_CUDA_COLUMN_SUMS_H_
#define RUBATO_KERNELS_CUDA_COLUMN_SUMS_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/work.h"

// For .cu.cc files alone.
namespace rubato::cuda {

// A warp's columns, which it reads together, and rows that are summed side by side.
inline constexpr int kSumColumns = 32;
inline constexpr int kSumRows = 8;

template <int kOutputs>
struct Terms {
  double values[kOutputs];
};

template <int kOutputs>
struct SumTargets {
  float* values[kOutputs];
};

// partials [split][output][column]: sums of term(row, column) over the rows of a split.
template <int kOutputs, typename Term>
__global__ void PartialColumnSums(int64_t rows, int64_t columns, int64_t rows_per_split, Term term, double* partials) {
  __shared__ double shared[kOutputs][kSumRows][kSumColumns];
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kSumColumns + threadIdx.x;
  const int64_t begin = blockIdx.y * rows_per_split;
  const int64_t end = begin + rows_per_split < rows ? begin + rows_per_split : rows;
  double sums[kOutputs] = {};
  if (column < columns) {
#pragma unroll 4
    for (int64_t row = begin + threadIdx.y; row < end; row += kSumRows) {
      const Terms<kOutputs> terms = term(row, column);
      for (int o = 0; o < kOutputs; ++o) sums[o] += terms.values[o];
    }
  }
  for (int o = 0; o < kOutputs; ++o) shared[o][threadIdx.y][threadIdx.x] = sums[o];
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  for (int o = 0; o < kOutputs; ++o) {
    double sum = 0;
    for (int row = 0; row < kSumRows; ++row) sum += shared[o][row][threadIdx.x];
    partials[(static_cast<int64_t>(blockIdx.y) * kOutputs + o) * columns + column] = sum;
  }
}

template <int kOutputs>
__global__ void FinishColumnSums(const double* partials, int splits, int64_t columns, bool accumulate,
                                 SumTargets<kOutputs> to) {
  for (int64_t column = First(); column < columns; column += Stride()) {
    for (int o = 0; o < kOutputs; ++o) {
      double sum = 0;
      for (int split = 0; split < splits; ++split) {
        sum += partials[(static_cast<int64_t>(split) * kOutputs + o) * columns + column];
      }
      to.values[o][column] = static_cast<float>(sum) + (accumulate ? to.values[o][column] : 0.0f);
    }
  }
}

// to[o][column] = the sum of term(row, column).values[o] over the rows; with `accumulate` that is added.
template <int kOutputs, typename Term>
absl::Status ColumnSums(Work& work, int64_t rows, int64_t columns, Term term, bool accumulate,
                        const SumTargets<kOutputs>& to) {
  if (columns == 0) return absl::OkStatus();
  const auto splits = static_cast<int>(std::clamp<int64_t>(rows / 64, 1, 128));
  const int64_t rows_per_split = (rows + splits - 1) / splits;
  RUBATO_ASSIGN_OR_RETURN(double* partials, work.Scratch<double>(splits * kOutputs * columns));
  const dim3 blocks(static_cast<unsigned>((columns + kSumColumns - 1) / kSumColumns), splits);
  RUBATO_CUDA_LAUNCH((PartialColumnSums<kOutputs, Term>), blocks, dim3(kSumColumns, kSumRows), work.stream(), rows,
                     columns, rows_per_split, term, partials);
  RUBATO_CUDA_LAUNCH((FinishColumnSums<kOutputs>), Blocks(columns), kThreads, work.stream(), partials, splits, columns,
                     accumulate, to);
  return absl::OkStatus();
}

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_COLUMN_SUMS_H_
