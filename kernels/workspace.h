#ifndef RUBATO_KERNELS_WORKSPACE_H_
#define RUBATO_KERNELS_WORKSPACE_H_

#include <cstdint>

#include "kernels/device_tensor.h"
#include "kernels/geometry.h"

namespace rubato {

// What a backend's layers are kept in, and what its operations take for themselves while they run, beside the tensors.
// All zeros: nothing that is worth counting.
struct WorkspaceRules {
  // Of Backend::ActivationType.
  ElementType activation_type = ElementType::kFloat32;
  // For as long as the backend lives, with what its libraries load when they are used.
  int64_t fixed_bytes = 0;
  // Of an element of a product's inputs if it has to lie in the workspace.
  int64_t gathered_bytes = 0;
  // Convolutions take images through im2col, and attention computes scores, as many at a time as have about this many
  // elements.
  int64_t im2col_elements = 0;
  int64_t score_elements = 0;
  // Attention needs no such memory if its heads have a width that FusesAttention knows.
  bool fused_attention = false;
  // Of an element that TOP_K chooses from.
  int64_t top_k_bytes = 0;
};

// Images that a convolution takes through im2col together, 1 to `batch`.
int64_t ImagesAtOnce(const WorkspaceRules& rules, const Conv2dGeometry& geometry, int64_t batch);
// Whether attention computes its scores where it needs them, and has none in memory.
bool FusesAttention(const WorkspaceRules& rules, const AttentionGeometry& geometry);
// Rows of scores that other attention has in memory together for so many pairs of example and head, 1 to the sequence's
// length. With the rules' bound, memory grows with the sequence and not with its square, except for a least number of
// rows.
int64_t ScoreRowsAtOnce(const WorkspaceRules& rules, const AttentionGeometry& geometry, int64_t pairs);

// The most that the forward and backward operations take at a time for a batch of so many examples, in bytes.
int64_t Conv2dWorkspaceBytes(const WorkspaceRules& rules, const Conv2dGeometry& geometry, int64_t batch);
int64_t AttentionWorkspaceBytes(const WorkspaceRules& rules, const AttentionGeometry& geometry, int64_t batch);

}  // namespace rubato

#endif  // RUBATO_KERNELS_WORKSPACE_H_
