#include "kernels/cuda/fused_attention.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/attention_tiles.h"
#include "kernels/cuda/launch.h"

namespace rubato::cuda {
namespace {

constexpr float kLog2E = 1.44269504f, kLn2 = 0.69314718f;

// Rows of the tiles that blocks of threads go through, forward and backward: fewer where rows are wide, so that
// registers suffice.
template <int kWidth>
inline constexpr int kTileRows = kWidth > 64 ? 32 : 64;
template <int kWidth>
inline constexpr int kBackwardTileRows = kWidth > 64 ? 16 : 32;

// One pair's part of the tensors.
struct Head {
  __device__ Head(const AttentionGeometry& geometry, int64_t pair)
      : sequence(geometry.sequence),
        head_width(geometry.head_width),
        width(geometry.heads * geometry.head_width),
        pair(pair),
        example(pair / geometry.heads),
        head(pair % geometry.heads) {}

  // Queries, keys and values: part 0, 1 and 2.
  template <typename Element>
  __device__ HeadRows<Element> Qkv(Element* qkv, int part) const {
    return {qkv + (example * sequence * 3 + part) * width + head * head_width, 3 * width, sequence};
  }
  template <typename Element>
  __device__ HeadRows<Element> Output(Element* y) const {
    return {y + example * sequence * width + head * head_width, width, sequence};
  }
  template <typename Element>
  __device__ Element* Statistic(Element* values) const {
    return values + pair * sequence;
  }

  const int64_t sequence, head_width, width, pair, example, head;
};

__device__ inline int64_t BlocksOfRows(int64_t rows) { return (rows + kBlockRows - 1) / kBlockRows; }

// Over the four lanes that have parts of the same rows.
__device__ inline float RowMax(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ inline float RowSum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

// What a row's softmax is so far, in each lane for its two rows: the sums are relative to 2 to the power of the
// maximum, and are the lane's own until the end.
struct RunningSoftmax {
  float maximum[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0, 0};
};

// Takes scores [16, kColumns], which become 2^(score * scale - maximum), or 0 after their row's own position; what was
// summed before is scaled to the new maximum. `distance`: from the first row to the first column.
template <int kColumns, int kWidth>
__device__ void TakeScores(float scale, int64_t distance, RowSums<kColumns>& scores, RunningSoftmax& softmax,
                           RowSums<kWidth>& sums) {
  for (int half = 0; half < 2; ++half) {
    const int64_t row = Lane() / 4 + half * 8;
    float maximum = softmax.maximum[half];
#pragma unroll
    for (int i = 0; i < kColumns / 8; ++i) {
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        float& score = scores.columns[i].values[half * 2 + side];
        score = distance + i * 8 + Lane() % 4 * 2 + side <= row ? score * scale : -INFINITY;
        maximum = fmaxf(maximum, score);
      }
    }
    // Finite: each row sees the first column of the first tile.
    maximum = RowMax(maximum);
    const float factor = exp2f(softmax.maximum[half] - maximum);
    softmax.maximum[half] = maximum;
    softmax.sum[half] *= factor;
#pragma unroll
    for (int i = 0; i < kColumns / 8; ++i) {
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        float& score = scores.columns[i].values[half * 2 + side];
        score = exp2f(score - maximum);
        softmax.sum[half] += score;
      }
    }
#pragma unroll
    for (int i = 0; i < kWidth / 8; ++i) {
      sums.columns[i].values[half * 2] *= factor;
      sums.columns[i].values[half * 2 + 1] *= factor;
    }
  }
}

// A block of threads for kBlockRows queries of a pair; those that see most begin first.
template <typename T, int kWidth>
__global__ void __launch_bounds__(kAttentionThreads)
    FusedAttentionKernel(AttentionGeometry g, float scale, const T* qkv, T* y, float* log_sum_exp) {
  constexpr int kRows = kTileRows<kWidth>;
  __shared__ Tile<T, kRows, kWidth> keys;
  __shared__ Tile<T, kRows, kWidth> values;
  const int64_t blocks = BlocksOfRows(g.sequence), block = blocks - 1 - blockIdx.x % blocks;
  const Head head(g, blockIdx.x / blocks);
  const int64_t first = block * kBlockRows + WarpRow();
  const int64_t end = block + 1 < blocks ? (block + 1) * kBlockRows : g.sequence;
  RowFragments<kWidth> queries;
  LoadRows(head.Qkv(qkv, 0), first, queries);
  RunningSoftmax softmax;
  RowSums<kWidth> sums;
  Clear(sums);
  for (int64_t column = 0; column < end; column += kRows) {
    __syncthreads();
    LoadTile(head.Qkv(qkv, 1), column, keys);
    LoadTile(head.Qkv(qkv, 2), column, values);
    __syncthreads();
    RowSums<kRows> scores;
    MultiplyByTile(queries, keys, scores);
    TakeScores(scale * kLog2E, column - first, scores, softmax, sums);
    AddProduct(scores, values, sums);
  }
  float factors[2];
  for (int half = 0; half < 2; ++half) {
    const float total = RowSum(softmax.sum[half]);
    factors[half] = 1 / total;
    const int64_t row = first + Lane() / 4 + half * 8;
    if (Lane() % 4 == 0 && row < g.sequence) {
      head.Statistic(log_sum_exp)[row] = (softmax.maximum[half] + log2f(total)) * kLn2;
    }
  }
  StoreRows(sums, factors, first, head.Output(y));
}

// What is known of a query's scores. After the last query, what makes its probabilities and their gradients 0.
struct QueryStatistics {
  float log2_sum_exp, mean;
};
__device__ inline QueryStatistics LoadStatistics(const Head& head, const float* log_sum_exp, const float* means,
                                                 int64_t query) {
  if (query >= head.sequence) return {INFINITY, 0};
  return {head.Statistic(log_sum_exp)[query] * kLog2E, head.Statistic(means)[query]};
}

// The probability that belongs to a score, and the gradient of the score before it was scaled.
struct ScoreGradient {
  float probability, gradient;
};
__device__ inline ScoreGradient DifferentiateScore(float scaled_score, float dprobability, const QueryStatistics& query,
                                                   bool visible) {
  const float probability = visible ? exp2f(scaled_score - query.log2_sum_exp) : 0.0f;
  return {probability, probability * (dprobability - query.mean)};
}

// dq: a block of threads for kBlockRows queries of a pair.
template <typename T, int kWidth>
__global__ void __launch_bounds__(kAttentionThreads)
    FusedQueryGradientKernel(AttentionGeometry g, float scale, const T* qkv, const float* log_sum_exp,
                             const float* means, const T* dy, T* dqkv) {
  constexpr int kRows = kBackwardTileRows<kWidth>;
  __shared__ Tile<T, kRows, kWidth> keys;
  __shared__ Tile<T, kRows, kWidth> values;
  const int64_t blocks = BlocksOfRows(g.sequence), block = blocks - 1 - blockIdx.x % blocks;
  const Head head(g, blockIdx.x / blocks);
  const int64_t first = block * kBlockRows + WarpRow();
  const int64_t end = block + 1 < blocks ? (block + 1) * kBlockRows : g.sequence;
  RowFragments<kWidth> queries, gradients;
  LoadRows(head.Qkv(qkv, 0), first, queries);
  LoadRows(head.Output(dy), first, gradients);
  const QueryStatistics statistics[2] = {LoadStatistics(head, log_sum_exp, means, first + Lane() / 4),
                                         LoadStatistics(head, log_sum_exp, means, first + Lane() / 4 + 8)};
  RowSums<kWidth> sums;
  Clear(sums);
  for (int64_t column = 0; column < end; column += kRows) {
    __syncthreads();
    LoadTile(head.Qkv(qkv, 1), column, keys);
    LoadTile(head.Qkv(qkv, 2), column, values);
    __syncthreads();
    RowSums<kRows> scores, dprobabilities;
    MultiplyByTile(queries, keys, scores);
    MultiplyByTile(gradients, values, dprobabilities);
#pragma unroll
    for (int i = 0; i < kRows / 8; ++i) {
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        const int half = part / 2;
        const bool visible = column + i * 8 + Lane() % 4 * 2 + part % 2 <= first + Lane() / 4 + half * 8;
        float& score = scores.columns[i].values[part];
        const float dprobability = dprobabilities.columns[i].values[part];
        score = DifferentiateScore(score * scale * kLog2E, dprobability, statistics[half], visible).gradient;
      }
    }
    AddProduct(scores, keys, sums);
  }
  StoreRows(sums, {scale, scale}, first, head.Qkv(dqkv, 0));
}

// dk and dv: a block of threads for kBlockRows keys of a pair and their values, with the scores' transpose.
template <typename T, int kWidth>
__global__ void __launch_bounds__(kAttentionThreads)
    FusedKeyGradientKernel(AttentionGeometry g, float scale, const T* qkv, const float* log_sum_exp, const float* means,
                           const T* dy, T* dqkv) {
  constexpr int kColumns = kBackwardTileRows<kWidth>;
  __shared__ Tile<T, kColumns, kWidth> queries;
  __shared__ Tile<T, kColumns, kWidth> gradients;
  __shared__ QueryStatistics statistics[kColumns];
  const int64_t blocks = BlocksOfRows(g.sequence), block = blockIdx.x % blocks;
  const Head head(g, blockIdx.x / blocks);
  const int64_t first = block * kBlockRows + WarpRow();
  RowFragments<kWidth> keys, values;
  LoadRows(head.Qkv(qkv, 1), first, keys);
  LoadRows(head.Qkv(qkv, 2), first, values);
  RowSums<kWidth> dkeys, dvalues;
  Clear(dkeys);
  Clear(dvalues);
  // The queries that see the first of these keys, and all after them.
  for (int64_t column = block * kBlockRows; column < g.sequence; column += kColumns) {
    __syncthreads();
    LoadTile(head.Qkv(qkv, 0), column, queries);
    LoadTile(head.Output(dy), column, gradients);
    for (int i = static_cast<int>(threadIdx.x); i < kColumns; i += kAttentionThreads) {
      statistics[i] = LoadStatistics(head, log_sum_exp, means, column + i);
    }
    __syncthreads();
    RowSums<kColumns> probabilities, dscores;
    MultiplyByTile(keys, queries, probabilities);
    MultiplyByTile(values, gradients, dscores);
#pragma unroll
    for (int i = 0; i < kColumns / 8; ++i) {
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        const int query = i * 8 + Lane() % 4 * 2 + part % 2;
        const bool visible = first + Lane() / 4 + part / 2 * 8 <= column + query;
        float &probability = probabilities.columns[i].values[part], &dscore = dscores.columns[i].values[part];
        const ScoreGradient result =
            DifferentiateScore(probability * scale * kLog2E, dscore, statistics[query], visible);
        probability = result.probability;
        dscore = result.gradient;
      }
    }
    AddProduct(probabilities, gradients, dvalues);
    AddProduct(dscores, queries, dkeys);
  }
  StoreRows(dkeys, {scale, scale}, first, head.Qkv(dqkv, 1));
  StoreRows(dvalues, {1, 1}, first, head.Qkv(dqkv, 2));
}

struct Arguments {
  AttentionGeometry geometry;
  int64_t batch;
  const void *qkv, *dy;
  const float *log_sum_exp, *means;
  void *y, *dqkv;
  float* log_sum_exp_out;

  float scale() const { return 1 / std::sqrt(static_cast<float>(geometry.head_width)); }
  unsigned blocks() const {
    return static_cast<unsigned>(batch * geometry.heads * ((geometry.sequence + kBlockRows - 1) / kBlockRows));
  }
};

template <typename T, int kWidth>
struct Forward {
  static absl::Status Launch(Stream stream, const Arguments& a) {
    RUBATO_CUDA_LAUNCH((FusedAttentionKernel<T, kWidth>), a.blocks(), kAttentionThreads, stream, a.geometry, a.scale(),
                       static_cast<const T*>(a.qkv), static_cast<T*>(a.y), a.log_sum_exp_out);
    return absl::OkStatus();
  }
};

template <typename T, int kWidth>
struct Backward {
  static absl::Status Launch(Stream stream, const Arguments& a) {
    const T *const qkv = static_cast<const T*>(a.qkv), *const dy = static_cast<const T*>(a.dy);
    T* const dqkv = static_cast<T*>(a.dqkv);
    RUBATO_CUDA_LAUNCH((FusedQueryGradientKernel<T, kWidth>), a.blocks(), kAttentionThreads, stream, a.geometry,
                       a.scale(), qkv, a.log_sum_exp, a.means, dy, dqkv);
    RUBATO_CUDA_LAUNCH((FusedKeyGradientKernel<T, kWidth>), a.blocks(), kAttentionThreads, stream, a.geometry,
                       a.scale(), qkv, a.log_sum_exp, a.means, dy, dqkv);
    return absl::OkStatus();
  }
};

template <template <typename, int> typename Pass, typename T>
absl::Status ForWidth(Stream stream, const Arguments& a) {
  switch (a.geometry.head_width) {
    case 16:
      return Pass<T, 16>::Launch(stream, a);
    case 32:
      return Pass<T, 32>::Launch(stream, a);
    case 64:
      return Pass<T, 64>::Launch(stream, a);
    case 128:
      return Pass<T, 128>::Launch(stream, a);
    default:
      return absl::InternalError(absl::StrCat("fused attention: heads of ", a.geometry.head_width));
  }
}

template <template <typename, int> typename Pass>
absl::Status ForType(Stream stream, ElementType type, const Arguments& a) {
  if (type == ElementType::kBfloat16) return ForWidth<Pass, __nv_bfloat16>(stream, a);
  if (type == ElementType::kFloat16) return ForWidth<Pass, __half>(stream, a);
  return absl::InternalError(absl::StrCat("fused attention: operands of ", TypeName(type)));
}

}  // namespace

absl::Status FusedAttention(Stream stream, const AttentionGeometry& geometry, int64_t batch, ElementType type,
                            const void* qkv, void* y, float* log_sum_exp) {
  return ForType<Forward>(stream, type,
                          {.geometry = geometry, .batch = batch, .qkv = qkv, .y = y, .log_sum_exp_out = log_sum_exp});
}

absl::Status FusedAttentionBackward(Stream stream, const AttentionGeometry& geometry, int64_t batch, ElementType type,
                                    const void* qkv, const float* log_sum_exp, const float* means, const void* dy,
                                    void* dqkv) {
  return ForType<Backward>(stream, type,
                           {.geometry = geometry,
                            .batch = batch,
                            .qkv = qkv,
                            .dy = dy,
                            .log_sum_exp = log_sum_exp,
                            .means = means,
                            .dqkv = dqkv});
}

}  // namespace rubato::cuda
