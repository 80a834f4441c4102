#ifndef RUBATO_COMMON_MODEL_SPEC_LAYER_KIND_H_
#define RUBATO_COMMON_MODEL_SPEC_LAYER_KIND_H_

#include <optional>
#include <string>

#include "common/model_spec/spec_builder.h"

namespace rubato {

// What a model spec has to know of one kind of layer. Members are null if there is nothing to do.
struct LayerKind {
  // Sets the fields that are absent and have a default which does not depend on the layer's input.
  void (*fill_defaults)(v1::LayerConfig* config) = nullptr;
  // Checks the config of a layer whose input is builder.shape(), adds the layer's tensors, and returns the shape of its
  // output if that is known. Errors go to the builder.
  std::optional<Shape> (*add)(SpecBuilder& builder, LayerSpec& layer) = nullptr;
  // Of a layer that consists of others: adds these. `add` is then for the one part that is of the kind itself.
  void (*expand)(SpecBuilder& builder, const v1::LayerConfig& config, const std::string& name) = nullptr;
};

// The row of a kind. KIND_NOT_SET has an empty one.
LayerKind FindLayerKind(v1::LayerConfig::KindCase kind);

// Of layers that give their input's shape on.
std::optional<Shape> AddWithSameShape(SpecBuilder& builder, LayerSpec& layer);

// ---- interactions.cc ----

std::optional<Shape> AddDotInteraction(SpecBuilder& builder, LayerSpec& layer);
std::optional<Shape> AddFactorizationMachine(SpecBuilder& builder, LayerSpec& layer);
void FillCross(v1::LayerConfig* config);
void ExpandCross(SpecBuilder& builder, const v1::LayerConfig& config, const std::string& name);
void FillBranches(v1::LayerConfig* config);
void ExpandBranches(SpecBuilder& builder, const v1::LayerConfig& config, const std::string& name);

// ---- blocks.cc: layers that consist of others ----

std::optional<Shape> AddAttentionHeads(SpecBuilder& builder, LayerSpec& layer);
void ExpandAttention(SpecBuilder& builder, const v1::LayerConfig& config, const std::string& name);
void ExpandTransformer(SpecBuilder& builder, const v1::LayerConfig& config, const std::string& name);
void FillResidual(v1::LayerConfig* config);
void ExpandResidual(SpecBuilder& builder, const v1::LayerConfig& config, const std::string& name);

}  // namespace rubato

#endif  // RUBATO_COMMON_MODEL_SPEC_LAYER_KIND_H_
