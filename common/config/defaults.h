#ifndef RUBATO_COMMON_CONFIG_DEFAULTS_H_
#define RUBATO_COMMON_CONFIG_DEFAULTS_H_

#include "proto/job_config.pb.h"

namespace rubato {

// Gives absent fields the defaults that proto/*_config.proto states. A field that is there keeps its value, so that a
// written 0 is judged by validation instead of being replaced. Names of layers are left to BuildModelSpec.
void FillDefaults(v1::JobConfig* config);

// The same for a config that awaits its model (awaited_model.h), and still does afterwards.
void FillDefaultsBesideModel(v1::JobConfig* config);

}  // namespace rubato

#endif  // RUBATO_COMMON_CONFIG_DEFAULTS_H_
