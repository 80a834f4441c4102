#include "worker/nn/layers/join.h"

#include <algorithm>

#include "worker/nn/layers/join_table.h"

namespace rubato::worker {
namespace {

// Null if there is no join of the kind.
JoinFactory* FindJoinFactory(v1::LayerConfig::KindCase kind) {
  if (kind == v1::LayerConfig::kResidual) return CreateSum;
  if (kind == v1::LayerConfig::kCross) return CreateProduct;
  if (kind == v1::LayerConfig::kBranches) return CreateConcatenation;
  return nullptr;
}

}  // namespace

bool IsJoin(const LayerSpec& spec) { return FindJoinFactory(spec.config.kind_case()) != nullptr; }

std::vector<int> JoinedLayers(const LayerSpec& spec) {
  if (!spec.config.has_branches()) return {spec.source, spec.shortcut};
  std::vector<int> layers;
  for (const SourceRange& part : spec.parts) {
    if (std::find(layers.begin(), layers.end(), part.layer) == layers.end()) layers.push_back(part.layer);
  }
  return layers;
}

absl::StatusOr<DeviceTensor> AllocateJoinGradient(const LayerContext& context, const JoinInput& input) {
  if (!input.needs_gradient) return DeviceTensor();
  return context.backend->Allocate(BatchShape(context.max_batch, input.shape), context.backend->ActivationType());
}

absl::StatusOr<std::unique_ptr<Join>> CreateJoin(const LayerSpec& spec, const LayerContext& context,
                                                 const JoinOptions& options) {
  return FindJoinFactory(spec.config.kind_case())(spec, context, options);
}

}  // namespace rubato::worker
