#include <algorithm>
#include <cmath>

#include "common/status.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/embedding.h"
#include "kernels/cuda/fused_attention.h"

namespace rubato::cuda {
namespace {

float ScoreScale(const AttentionGeometry& g) { return 1 / std::sqrt(static_cast<float>(g.head_width)); }

// Queries, keys and values (part 0, 1, 2) in a qkv tensor.
HeadSlice QkvSlice(const AttentionGeometry& g, int part) {
  return {.sequence = g.sequence,
          .heads = g.heads,
          .head_width = g.head_width,
          .position_stride = 3 * g.width(),
          .first = part * g.width()};
}

HeadSlice OutputSlice(const AttentionGeometry& g) {
  return {
      .sequence = g.sequence, .heads = g.heads, .head_width = g.head_width, .position_stride = g.width(), .first = 0};
}

}  // namespace

absl::Status CudaOperations::Embed(const DeviceTensor& table, const DeviceTensor& indices, const DeviceTensor& y) {
  if (y.elements() == 0) return absl::OkStatus();
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&table, &indices}, {&y}));
  return cuda::Embed(work.stream(), In(table), table.columns(), indices.data<const int32_t>(), indices.elements(),
                     y.type(), OutBytes(y));
}

absl::Status CudaOperations::EmbedBackward(const DeviceTensor& indices, const DeviceTensor& dy, bool accumulate,
                                           const DeviceTensor& dtable) {
  if (dtable.elements() == 0) return absl::OkStatus();
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&indices, &dy}, {&dtable}));
  return cuda::EmbedBackward(work, indices.data<const int32_t>(), indices.elements(), dy.type(), InBytes(dy),
                             dtable.rows(), dtable.columns(), accumulate, Out(dtable));
}

absl::StatusOr<CudaOperations::HeadOperands> CudaOperations::GatherQkv(Work& work, const AttentionGeometry& g,
                                                                       int64_t batch, const void* qkv) {
  void* parts[3] = {};
  for (int part = 0; part < 3; ++part) {
    RUBATO_ASSIGN_OR_RETURN(parts[part], NewOperand(work, batch * g.sequence * g.width()));
    RUBATO_RETURN_IF_ERROR(GatherHeads(work.stream(), QkvSlice(g, part), batch, type_, qkv, parts[part]));
  }
  return HeadOperands{parts[0], parts[1], parts[2]};
}

absl::Status CudaOperations::CausalAttention(const AttentionGeometry& g, const DeviceTensor& qkv, const DeviceTensor& y,
                                             const DeviceTensor& log_sum_exp) {
  if (y.elements() == 0) return absl::OkStatus();
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&qkv}, {&y, &log_sum_exp}));
  if (FusesAttention(workspace_, g)) {
    return FusedAttention(work.stream(), g, qkv.rows(), type_, InBytes(qkv), OutBytes(y), Out(log_sum_exp));
  }
  const int64_t batch = qkv.rows(), pairs = batch * g.heads, stride = g.sequence * g.head_width;
  RUBATO_ASSIGN_OR_RETURN(const HeadOperands heads, GatherQkv(work, g, batch, InBytes(qkv)));
  const int64_t at_once = ScoreRowsAtOnce(workspace_, g, pairs);
  RUBATO_ASSIGN_OR_RETURN(float* scores, work.Scratch<float>(pairs * at_once * g.sequence));
  RUBATO_ASSIGN_OR_RETURN(void* probabilities, NewOperand(work, pairs * at_once * g.sequence));
  RUBATO_ASSIGN_OR_RETURN(float* out, work.Scratch<float>(y.elements()));
  for (int64_t begin = 0; begin < g.sequence; begin += at_once) {
    const ScoreBlock block = {
        .pairs = pairs, .sequence = g.sequence, .begin = begin, .rows = std::min(at_once, g.sequence - begin)};
    const int64_t columns = block.columns(), first = begin * g.head_width;
    RUBATO_RETURN_IF_ERROR(cublas_->Multiply(
        {.m = block.rows, .n = columns, .k = g.head_width, .batch = pairs}, type_, ScoreScale(g),
        {.data = OperandAt(static_cast<const char*>(heads.q), first), .columns = g.head_width, .stride = stride},
        {.data = heads.k, .columns = g.head_width, .stride = stride, .transposed = true}, 0,
        {.data = scores, .columns = columns, .stride = block.rows * columns}));
    RUBATO_RETURN_IF_ERROR(CausalSoftmax(work.stream(), block, type_, scores, probabilities, Out(log_sum_exp)));
    RUBATO_RETURN_IF_ERROR(
        cublas_->Multiply({.m = block.rows, .n = g.head_width, .k = columns, .batch = pairs}, type_, 1,
                          {.data = probabilities, .columns = columns, .stride = block.rows * columns},
                          {.data = heads.v, .columns = g.head_width, .stride = stride}, 0,
                          {.data = out + first, .columns = g.head_width, .stride = stride}));
  }
  return ScatterHeads(work.stream(), OutputSlice(g), batch, out, type_, OutBytes(y));
}

// What a block of rows adds to, and what it needs for that.
struct CudaOperations::HeadGradients {
  const void* dy = nullptr;  // [pairs, sequence, head_width], an operand.
  const float* log_sum_exp = nullptr;
  const float* means = nullptr;  // [pairs, sequence].
  // [pairs, sequence, head_width].
  float *dq = nullptr, *dk = nullptr, *dv = nullptr;
  // [pairs, rows, columns] of the block.
  float *scores = nullptr, *dprobabilities = nullptr;
  void *probabilities = nullptr, *dscores = nullptr;  // Operands.
};

absl::Status CudaOperations::AttentionRowsBackward(Work& work, const AttentionGeometry& g, const ScoreBlock& block,
                                                   const HeadOperands& heads, const HeadGradients& gradients) {
  const int64_t width = g.head_width, stride = g.sequence * width, columns = block.columns();
  const int64_t first = block.begin * width;
  // Views of [pairs, sequence, head_width] from row 0 or from the block's first row on, and of the block's scores.
  const auto whole = [&](const void* data, bool transposed) {
    return Cublas::Operand{.data = data, .columns = width, .stride = stride, .transposed = transposed};
  };
  const auto rows = [&](const void* data) { return whole(OperandAt(static_cast<const char*>(data), first), false); };
  const auto block_of = [&](const void* data, bool transposed) {
    return Cublas::Operand{.data = data, .columns = columns, .stride = block.rows * columns, .transposed = transposed};
  };
  const Cublas::Sizes to_scores = {.m = block.rows, .n = columns, .k = width, .batch = block.pairs};
  const Cublas::Sizes to_rows = {.m = block.rows, .n = width, .k = columns, .batch = block.pairs};
  const Cublas::Sizes to_keys = {.m = columns, .n = width, .k = block.rows, .batch = block.pairs};
  const auto scores_at = [&](float* data) {
    return Cublas::Result{.data = data, .columns = columns, .stride = block.rows * columns};
  };
  const auto heads_at = [&](float* data) { return Cublas::Result{.data = data, .columns = width, .stride = stride}; };
  RUBATO_RETURN_IF_ERROR(cublas_->Multiply(to_scores, type_, ScoreScale(g), rows(heads.q), whole(heads.k, true), 0,
                                           scores_at(gradients.scores)));
  RUBATO_RETURN_IF_ERROR(cublas_->Multiply(to_scores, type_, 1, rows(gradients.dy), whole(heads.v, true), 0,
                                           scores_at(gradients.dprobabilities)));
  RUBATO_RETURN_IF_ERROR(CausalSoftmaxBackward(work.stream(), block, type_, gradients.scores, gradients.log_sum_exp,
                                               gradients.dprobabilities, gradients.means, gradients.probabilities,
                                               gradients.dscores));
  RUBATO_RETURN_IF_ERROR(cublas_->Multiply(to_rows, type_, ScoreScale(g), block_of(gradients.dscores, false),
                                           whole(heads.k, false), 0, heads_at(gradients.dq + first)));
  RUBATO_RETURN_IF_ERROR(cublas_->Multiply(to_keys, type_, ScoreScale(g), block_of(gradients.dscores, true),
                                           rows(heads.q), 1, heads_at(gradients.dk)));
  return cublas_->Multiply(to_keys, type_, 1, block_of(gradients.probabilities, true), rows(gradients.dy), 1,
                           heads_at(gradients.dv));
}

absl::Status CudaOperations::CausalAttentionBackward(const AttentionGeometry& g, const DeviceTensor& qkv,
                                                     const DeviceTensor& y, const DeviceTensor& log_sum_exp,
                                                     const DeviceTensor& dy, const DeviceTensor& dqkv) {
  if (y.elements() == 0) return absl::OkStatus();
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&qkv, &y, &log_sum_exp, &dy}, {&dqkv}));
  const int64_t batch = qkv.rows(), pairs = batch * g.heads, at_once = ScoreRowsAtOnce(workspace_, g, pairs);
  RUBATO_ASSIGN_OR_RETURN(float* means, work.Scratch<float>(pairs * g.sequence));
  if (FusesAttention(workspace_, g)) {
    return FusedAttentionBackward(work.stream(), g, batch, type_, InBytes(qkv), InBytes(y), In(log_sum_exp),
                                  InBytes(dy), means, OutBytes(dqkv));
  }
  RUBATO_RETURN_IF_ERROR(HeadDots(work.stream(), g, batch, type_, InBytes(y), InBytes(dy), means));
  RUBATO_ASSIGN_OR_RETURN(const HeadOperands heads, GatherQkv(work, g, batch, InBytes(qkv)));
  HeadGradients gradients = {.log_sum_exp = In(log_sum_exp), .means = means};
  RUBATO_ASSIGN_OR_RETURN(void* packed_dy, NewOperand(work, y.elements()));
  RUBATO_RETURN_IF_ERROR(GatherHeads(work.stream(), OutputSlice(g), batch, type_, InBytes(dy), packed_dy));
  gradients.dy = packed_dy;
  for (float** part : {&gradients.dq, &gradients.dk, &gradients.dv}) {
    RUBATO_ASSIGN_OR_RETURN(*part, work.Scratch<float>(y.elements()));
    // Rows add to the keys and values of all before them.
    RUBATO_RETURN_IF_ERROR(cuda::Fill(work.stream(), ElementType::kFloat32, 0, y.elements(), *part));
  }
  const int64_t scores = pairs * at_once * g.sequence;
  RUBATO_ASSIGN_OR_RETURN(gradients.scores, work.Scratch<float>(scores));
  RUBATO_ASSIGN_OR_RETURN(gradients.dprobabilities, work.Scratch<float>(scores));
  RUBATO_ASSIGN_OR_RETURN(gradients.probabilities, NewOperand(work, scores));
  RUBATO_ASSIGN_OR_RETURN(gradients.dscores, NewOperand(work, scores));
  for (int64_t begin = 0; begin < g.sequence; begin += at_once) {
    const ScoreBlock block = {
        .pairs = pairs, .sequence = g.sequence, .begin = begin, .rows = std::min(at_once, g.sequence - begin)};
    RUBATO_RETURN_IF_ERROR(AttentionRowsBackward(work, g, block, heads, gradients));
  }
  const float* parts[] = {gradients.dq, gradients.dk, gradients.dv};
  for (int part = 0; part < 3; ++part) {
    RUBATO_RETURN_IF_ERROR(ScatterHeads(work.stream(), QkvSlice(g, part), batch, parts[part], type_, OutBytes(dqkv)));
  }
  return absl::OkStatus();
}

}  // namespace rubato::cuda
