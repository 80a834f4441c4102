#include "kernels/cuda/fused_attention.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/attention_tiles.h"
#include "kernels/cuda/launch.h"

namespace rubato::cuda {
namespace {

constexpr float kLog2E = 1.44269504f, kLn2 = 0.69314718f;

// By the width of heads, so that registers suffice: parts of a warp's rows, and rows of tiles.
template <int kWidth>
inline constexpr int kPartsOf = kWidth > 64 ? 1 : 2;
template <int kWidth>
inline constexpr int kTileRows = kWidth > 64 ? 32 : 64;
// Backward, so many rows of a tile at a time.
inline constexpr int kStep = 16;

// One pair's part of the tensors, and the rows of it that a block of threads works for. With `last_first` blocks of
// threads begin with the last rows.
template <int kParts>
struct Head {
  __device__ Head(const AttentionGeometry& geometry, bool last_first)
      : sequence(static_cast<int>(geometry.sequence)),
        blocks((sequence + kBlockRows<kParts> - 1) / kBlockRows<kParts>),
        block(static_cast<int>(last_first ? blocks - 1 - blockIdx.x % blocks : blockIdx.x % blocks)),
        width(static_cast<int>(geometry.heads * geometry.head_width)),
        pair(blockIdx.x / blocks),
        example(pair / geometry.heads),
        first_column(pair % geometry.heads * geometry.head_width) {}

  // The block's rows begin and end here.
  __device__ int begin() const { return block * kBlockRows<kParts>; }
  __device__ int end() const { return block + 1 < blocks ? begin() + kBlockRows<kParts> : sequence; }

  // Queries, keys and values: part 0, 1 and 2.
  template <typename Element>
  __device__ HeadRows<Element> Qkv(Element* qkv, int part) const {
    return {qkv + (example * sequence * 3 + part) * width + first_column, 3 * width, sequence};
  }
  template <typename Element>
  __device__ HeadRows<Element> Output(Element* y) const {
    return {y + example * sequence * width + first_column, width, sequence};
  }
  template <typename Element>
  __device__ Element* Statistic(Element* values) const {
    return values + pair * sequence;
  }

  const int sequence, blocks, block, width;
  const int64_t pair, example, first_column;
};

// Over the four lanes that have parts of the same rows.
__device__ inline float RowMax(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ inline float RowSum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

// What rows' softmax is so far, in each lane for its rows: the sums are relative to the maximum of the scaled scores,
// and are the lane's own until the end. In powers of 2.
template <int kParts>
struct RunningSoftmax {
  __device__ RunningSoftmax() {
    for (int part = 0; part < kParts; ++part) {
      for (int half = 0; half < 2; ++half) {
        maximum[part][half] = -INFINITY;
        sum[part][half] = 0;
      }
    }
  }
  float maximum[kParts][2], sum[kParts][2];
};

// Takes scores [16 * kParts, kColumns], which become 2^(score * scale - maximum); what was summed before is scaled to
// the new maximum. With kHides, what comes after a row's own position becomes 0. `distance`: from the first row to the
// first column.
template <bool kHides, int kParts, int kColumns, int kWidth>
__device__ void TakeScores(float scale, int distance, RowSums<kParts, kColumns>& scores,
                           RunningSoftmax<kParts>& softmax, RowSums<kParts, kWidth>& sums) {
  float maxima[kParts][2], factors[kParts][2];
  for (int part = 0; part < kParts; ++part) {
    for (int half = 0; half < 2; ++half) maxima[part][half] = -INFINITY;
  }
  ForEach(
      [&](int part, int half, int column, float& score) {
        if (kHides && distance + column > LaneRow(part, half)) score = -INFINITY;
        maxima[part][half] = fmaxf(maxima[part][half], score);
      },
      scores);
  for (int part = 0; part < kParts; ++part) {
    for (int half = 0; half < 2; ++half) {
      float& maximum = softmax.maximum[part][half];
      // Finite: each row sees the first column of the first tile.
      const float reached = fmaxf(maximum, RowMax(maxima[part][half]) * scale);
      factors[part][half] = Exp2(maximum - reached);
      softmax.sum[part][half] *= factors[part][half];
      maximum = reached;
    }
  }
  ForEach(
      [&](int part, int half, int, float& score) {
        score = Exp2(fmaf(score, scale, -softmax.maximum[part][half]));
        softmax.sum[part][half] += score;
      },
      scores);
  ForEach([&](int part, int half, int, float& sum) { sum *= factors[part][half]; }, sums);
}

// Keys and their values from `first` on: the tiles that are computed with, and those that come after them.
template <typename T, int kRows, int kWidth>
struct KeyTiles {
  template <int kParts>
  __device__ void Copy(const Head<kParts>& head, const T* qkv, int first, int buffer) {
    CopyTile(head.Qkv(qkv, 1), first, keys[buffer]);
    CopyTile(head.Qkv(qkv, 2), first, values[buffer]);
  }

  Tile<T, kRows, kWidth> keys[2], values[2];
};

// A block of threads for kBlockRows queries of a pair; those that see most begin first.
template <typename T, int kWidth>
__global__ void __launch_bounds__(kAttentionThreads)
    FusedAttentionKernel(AttentionGeometry g, float scale, const T* qkv, T* y, float* log_sum_exp) {
  constexpr int kRows = kTileRows<kWidth>, kParts = kPartsOf<kWidth>;
  __shared__ KeyTiles<T, kRows, kWidth> tiles;
  const Head<kParts> head(g, true);
  const int first = head.begin() + WarpRow<kParts>();
  const int end = head.end();
  tiles.Copy(head, qkv, 0, 0);
  RowFragments<kParts, kWidth> queries;
  LoadRows(head.Qkv(qkv, 0), first, queries);
  RunningSoftmax<kParts> softmax;
  RowSums<kParts, kWidth> sums;
  Clear(sums);
  for (int column = 0, buffer = 0; column < end; column += kRows, buffer ^= 1) {
    AwaitCopies();
    __syncthreads();
    if (column + kRows < end) tiles.Copy(head, qkv, column + kRows, buffer ^ 1);
    if (column >= first + kPartRows * kParts) continue;
    RowSums<kParts, kRows> scores;
    MultiplyByTile(queries, tiles.keys[buffer], 0, scores);
    if (column + kRows - 1 <= first) {
      TakeScores<false>(scale * kLog2E, column - first, scores, softmax, sums);
    } else {
      TakeScores<true>(scale * kLog2E, column - first, scores, softmax, sums);
    }
    AddProduct(scores, tiles.values[buffer], 0, sums);
  }
  float factors[kParts][2];
  for (int part = 0; part < kParts; ++part) {
    for (int half = 0; half < 2; ++half) {
      const float total = RowSum(softmax.sum[part][half]);
      factors[part][half] = 1 / total;
      const int row = first + LaneRow(part, half);
      if (Lane() % 4 == 0 && row < head.sequence) {
        head.Statistic(log_sum_exp)[row] = (softmax.maximum[part][half] + log2f(total)) * kLn2;
      }
    }
  }
  StoreRows(sums, factors, first, head.Output(y));
}

// What is known of a query's scores, in powers of 2. After the last query there are zeros for everything, of which
// nothing comes.
struct QueryStatistics {
  float log2_sum_exp, mean;
};

// Scores become the gradients of scores before they were scaled, and the gradients of probabilities the probabilities.
// `query(part, half, column)`: the statistics of a score's query.
template <int kParts, int kColumns, typename Query>
__device__ inline void DifferentiateScores(float scale, const Query& query, RowSums<kParts, kColumns>& scores,
                                           RowSums<kParts, kColumns>& dprobabilities) {
  ForEach(
      [&](int part, int half, int column, float& score, float& dprobability) {
        const QueryStatistics statistics = query(part, half, column);
        const float probability = Exp2(fmaf(score, scale * kLog2E, -statistics.log2_sum_exp));
        score = probability * (dprobability - statistics.mean);
        dprobability = probability;
      },
      scores, dprobabilities);
}

// dq, and the means of queries: a block of threads for kBlockRows queries of a pair.
template <typename T, int kWidth>
__global__ void __launch_bounds__(kAttentionThreads)
    FusedQueryGradientKernel(AttentionGeometry g, float scale, const T* qkv, const T* y, const float* log_sum_exp,
                             const T* dy, float* means, T* dqkv) {
  constexpr int kRows = kTileRows<kWidth>, kParts = kPartsOf<kWidth>;
  __shared__ KeyTiles<T, kRows, kWidth> tiles;
  const Head<kParts> head(g, true);
  const int first = head.begin() + WarpRow<kParts>();
  const int end = head.end();
  tiles.Copy(head, qkv, 0, 0);
  RowFragments<kParts, kWidth> queries, gradients;
  LoadRows(head.Qkv(qkv, 0), first, queries);
  LoadRows(head.Output(dy), first, gradients);
  QueryStatistics statistics[kParts][2];
  float dots[kParts][2], scales[kParts][2];
  DotRows(gradients, head.Output(y), first, dots);
  for (int part = 0; part < kParts; ++part) {
    for (int half = 0; half < 2; ++half) {
      const int row = first + LaneRow(part, half);
      const bool exists = row < head.sequence;
      const float mean = RowSum(dots[part][half]);
      if (Lane() % 4 == 0 && exists) head.Statistic(means)[row] = mean;
      statistics[part][half] = {exists ? head.Statistic(log_sum_exp)[row] * kLog2E : 0, mean};
      scales[part][half] = scale;
    }
  }
  RowSums<kParts, kWidth> sums;
  Clear(sums);
  for (int tile = 0, buffer = 0; tile < end; tile += kRows, buffer ^= 1) {
    AwaitCopies();
    __syncthreads();
    if (tile + kRows < end) tiles.Copy(head, qkv, tile + kRows, buffer ^ 1);
#pragma unroll 1
    for (int column = tile; column < tile + kRows && column < first + kPartRows * kParts; column += kStep) {
      RowSums<kParts, kStep> scores, dprobabilities;
      MultiplyByTile(queries, tiles.keys[buffer], column - tile, scores);
      MultiplyByTile(gradients, tiles.values[buffer], column - tile, dprobabilities);
      DifferentiateScores(
          scale, [&](int part, int half, int) { return statistics[part][half]; }, scores, dprobabilities);
      if (column + kStep - 1 > first) {
        ForEach(
            [&](int part, int half, int at, float& dscore) {
              if (column + at > first + LaneRow(part, half)) dscore = 0;
            },
            scores);
      }
      AddProduct(scores, tiles.keys[buffer], column - tile, sums);
    }
  }
  StoreRows(sums, scales, first, head.Qkv(dqkv, 0));
}

// dk and dv: a block of threads for kBlockRows keys of a pair and their values, with the scores' transpose.
template <typename T, int kWidth>
__global__ void __launch_bounds__(kAttentionThreads)
    FusedKeyGradientKernel(AttentionGeometry g, float scale, const T* qkv, const float* log_sum_exp, const float* means,
                           const T* dy, T* dqkv) {
  constexpr int kRows = kTileRows<kWidth>, kParts = kPartsOf<kWidth>;
  static_assert(kRows <= kAttentionThreads);
  __shared__ Tile<T, kRows, kWidth> queries[2];
  __shared__ Tile<T, kRows, kWidth> gradients[2];
  __shared__ float log_sums[2][kRows];
  __shared__ float query_means[2][kRows];
  const Head<kParts> head(g, false);
  const int begin = head.begin(), first = begin + WarpRow<kParts>();
  const auto copy = [&](int column, int buffer) {
    CopyTile(head.Qkv(qkv, 0), column, queries[buffer]);
    CopyTile(head.Output(dy), column, gradients[buffer]);
    const int i = static_cast<int>(threadIdx.x);
    if (i < kRows) {
      const bool exists = column + i < head.sequence;
      CopyAsync<4>(head.Statistic(log_sum_exp) + (exists ? column + i : 0), exists, &log_sums[buffer][i]);
      CopyAsync<4>(head.Statistic(means) + (exists ? column + i : 0), exists, &query_means[buffer][i]);
    }
  };
  // The queries that see the first of these keys, and all after them.
  copy(begin, 0);
  RowFragments<kParts, kWidth> keys, values;
  LoadRows(head.Qkv(qkv, 1), first, keys);
  LoadRows(head.Qkv(qkv, 2), first, values);
  RowSums<kParts, kWidth> dkeys, dvalues;
  Clear(dkeys);
  Clear(dvalues);
  for (int tile = begin, buffer = 0; tile < head.sequence; tile += kRows, buffer ^= 1) {
    AwaitCopies();
    __syncthreads();
    if (tile + kRows < head.sequence) copy(tile + kRows, buffer ^ 1);
#pragma unroll 1
    for (int column = tile > first ? tile : first; column < tile + kRows; column += kStep) {
      RowSums<kParts, kStep> scores, probabilities;
      MultiplyByTile(keys, queries[buffer], column - tile, scores);
      MultiplyByTile(values, gradients[buffer], column - tile, probabilities);
      const float *const log_sum = log_sums[buffer] + (column - tile), *const mean =
                                                                           query_means[buffer] + (column - tile);
      DifferentiateScores(
          scale,
          [&](int, int, int at) {
            return QueryStatistics{log_sum[at] * kLog2E, mean[at]};
          },
          scores, probabilities);
      if (column < first + kPartRows * kParts - 1) {
        ForEach(
            [&](int part, int half, int at, float& dscore, float& probability) {
              if (column + at < first + LaneRow(part, half)) dscore = probability = 0;
            },
            scores, probabilities);
      }
      AddProduct(probabilities, gradients[buffer], column - tile, dvalues);
      AddProduct(scores, queries[buffer], column - tile, dkeys);
    }
  }
  float scales[kParts][2], ones[kParts][2];
  for (int part = 0; part < kParts; ++part) {
    for (int half = 0; half < 2; ++half) {
      scales[part][half] = scale;
      ones[part][half] = 1;
    }
  }
  StoreRows(dkeys, scales, first, head.Qkv(dqkv, 1));
  StoreRows(dvalues, ones, first, head.Qkv(dqkv, 2));
}

struct Problem {
  AttentionGeometry geometry;
  int64_t batch;

  float scale() const { return 1 / std::sqrt(static_cast<float>(geometry.head_width)); }
  // Of threads: for all rows of all pairs.
  template <int kWidth>
  unsigned blocks() const {
    constexpr int64_t kRows = kBlockRows<kPartsOf<kWidth>>;
    return static_cast<unsigned>(batch * geometry.heads * ((geometry.sequence + kRows - 1) / kRows));
  }
};

template <typename T, int kWidth>
struct Forward {
  static absl::Status Launch(Stream stream, const Problem& p, const void* qkv, void* y, float* log_sum_exp) {
    RUBATO_CUDA_LAUNCH((FusedAttentionKernel<T, kWidth>), p.blocks<kWidth>(), kAttentionThreads, stream, p.geometry,
                       p.scale(), static_cast<const T*>(qkv), static_cast<T*>(y), log_sum_exp);
    return absl::OkStatus();
  }
};

template <typename T, int kWidth>
struct Backward {
  static absl::Status Launch(Stream stream, const Problem& p, const void* qkv, const void* y, const float* log_sum_exp,
                             const void* dy, float* means, void* dqkv) {
    RUBATO_CUDA_LAUNCH((FusedQueryGradientKernel<T, kWidth>), p.blocks<kWidth>(), kAttentionThreads, stream, p.geometry,
                       p.scale(), static_cast<const T*>(qkv), static_cast<const T*>(y), log_sum_exp,
                       static_cast<const T*>(dy), means, static_cast<T*>(dqkv));
    RUBATO_CUDA_LAUNCH((FusedKeyGradientKernel<T, kWidth>), p.blocks<kWidth>(), kAttentionThreads, stream, p.geometry,
                       p.scale(), static_cast<const T*>(qkv), log_sum_exp, means, static_cast<const T*>(dy),
                       static_cast<T*>(dqkv));
    return absl::OkStatus();
  }
};

template <template <typename, int> typename Pass, typename T, typename... Tensors>
absl::Status ForWidth(Stream stream, const Problem& problem, Tensors... tensors) {
  switch (problem.geometry.head_width) {
    case 16:
      return Pass<T, 16>::Launch(stream, problem, tensors...);
    case 32:
      return Pass<T, 32>::Launch(stream, problem, tensors...);
    case 64:
      return Pass<T, 64>::Launch(stream, problem, tensors...);
    case 128:
      return Pass<T, 128>::Launch(stream, problem, tensors...);
  }
  return absl::InternalError(absl::StrCat("fused attention: heads of ", problem.geometry.head_width));
}

template <template <typename, int> typename Pass, typename... Tensors>
absl::Status ForType(ElementType type, Stream stream, const Problem& problem, Tensors... tensors) {
  switch (type) {
    case ElementType::kBfloat16:
      return ForWidth<Pass, __nv_bfloat16>(stream, problem, tensors...);
    case ElementType::kFloat16:
      return ForWidth<Pass, __half>(stream, problem, tensors...);
    case ElementType::kFloat32:
    case ElementType::kInt32:
    case ElementType::kFloat64:
      break;
  }
  return absl::InternalError(absl::StrCat("fused attention: operands of ", TypeName(type)));
}

}  // namespace

absl::Status FusedAttention(Stream stream, const AttentionGeometry& geometry, int64_t batch, ElementType type,
                            const void* qkv, void* y, float* log_sum_exp) {
  return ForType<Forward>(type, stream, {geometry, batch}, qkv, y, log_sum_exp);
}

absl::Status FusedAttentionBackward(Stream stream, const AttentionGeometry& geometry, int64_t batch, ElementType type,
                                    const void* qkv, const void* y, const float* log_sum_exp, const void* dy,
                                    float* means, void* dqkv) {
  return ForType<Backward>(type, stream, {geometry, batch}, qkv, y, log_sum_exp, dy, means, dqkv);
}

}  // namespace rubato::cuda
