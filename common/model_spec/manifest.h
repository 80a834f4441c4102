#ifndef RUBATO_COMMON_MODEL_SPEC_MANIFEST_H_
#define RUBATO_COMMON_MODEL_SPEC_MANIFEST_H_

#include "absl/status/statusor.h"
#include "common/model_spec.h"

namespace rubato {

// BuildModelSpec of a config with a manifest.
absl::StatusOr<ModelSpec> BuildManifestSpec(const v1::ModelConfig& config);

}  // namespace rubato

#endif  // RUBATO_COMMON_MODEL_SPEC_MANIFEST_H_
