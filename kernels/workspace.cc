#include "kernels/workspace.h"

#include <algorithm>
#include <iterator>

namespace rubato {
namespace {

constexpr int64_t kFloatBytes = 4;
constexpr int64_t kLeastRows = 64;

int64_t Positions(const Conv2dGeometry& g) { return g.output_height() * g.output_width(); }
int64_t Taps(const Conv2dGeometry& g) { return g.channels * g.kernel * g.kernel; }

}  // namespace

int64_t ImagesAtOnce(const WorkspaceRules& rules, const Conv2dGeometry& g, int64_t batch) {
  return std::clamp<int64_t>(rules.im2col_elements / (Taps(g) * Positions(g)), 1, std::max<int64_t>(batch, 1));
}

bool FusesAttention(const WorkspaceRules& rules, const AttentionGeometry& g) {
  constexpr int64_t kWidths[] = {16, 32, 64, 128};
  return rules.fused_attention && std::find(std::begin(kWidths), std::end(kWidths), g.head_width) != std::end(kWidths);
}

int64_t ScoreRowsAtOnce(const WorkspaceRules& rules, const AttentionGeometry& g, int64_t pairs) {
  const int64_t rows = rules.score_elements / std::max<int64_t>(pairs * g.sequence, 1) / kLeastRows * kLeastRows;
  return std::min(std::max(rows, kLeastRows), g.sequence);
}

int64_t Conv2dWorkspaceBytes(const WorkspaceRules& rules, const Conv2dGeometry& g, int64_t batch) {
  if (rules.im2col_elements == 0) return 0;
  const int64_t group = ImagesAtOnce(rules, g, batch);
  const int64_t columns = Taps(g) * group * Positions(g), gradients = g.filters * Positions(g);
  const int64_t data = columns * kFloatBytes;
  const int64_t weight = (columns + group * gradients) * rules.gathered_bytes;
  // A library may write the weight's gradient here before it is added to what is there.
  return std::max(data, weight) + g.filters * Taps(g) * rules.gathered_bytes;
}

int64_t AttentionWorkspaceBytes(const WorkspaceRules& rules, const AttentionGeometry& g, int64_t batch) {
  if (rules.score_elements == 0) return 0;
  const int64_t pairs = batch * g.heads, elements = batch * g.sequence * g.width();
  const int64_t means = pairs * g.sequence * kFloatBytes;
  if (FusesAttention(rules, g)) return means;
  const int64_t scores = pairs * ScoreRowsAtOnce(rules, g, pairs) * g.sequence;
  // Of the backward pass, which is more: q, k, v and dy as operands, means, dq, dk and dv, and four kinds of scores.
  return 4 * elements * rules.gathered_bytes + means + 3 * elements * kFloatBytes +
         2 * scores * (kFloatBytes + rules.gathered_bytes);
}

}  // namespace rubato
