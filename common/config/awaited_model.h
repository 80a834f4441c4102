#ifndef RUBATO_COMMON_CONFIG_AWAITED_MODEL_H_
#define RUBATO_COMMON_CONFIG_AWAITED_MODEL_H_

#include "proto/job_config.pb.h"

namespace rubato {

// Whether the config has neither model, data nor optimizer, so that the first client says what they are
// (docs/decisions/0021). Pure.
inline bool AwaitsModel(const v1::JobConfig& config) {
  return !config.has_model() && !config.has_data() && !config.has_optimizer();
}

// Whether the job's workers are clients: its model is a manifest, or is awaited. Pure.
inline bool IsClientJob(const v1::JobConfig& config) { return config.model().has_manifest() || AwaitsModel(config); }

}  // namespace rubato

#endif  // RUBATO_COMMON_CONFIG_AWAITED_MODEL_H_
