#ifndef RUBATO_COMMON_PLACEMENT_CHECK_H_
#define RUBATO_COMMON_PLACEMENT_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/model_spec.h"
#include "proto/coordinator.pb.h"

namespace rubato {

// Whether the chunks that a coordinator speaks of are the model's: every element of every tensor once, in their order,
// and then every shard of every table, each in one of the `partitions` of its server. FailedPrecondition: they are not;
// names the first that is wrong.
absl::Status CheckPlacements(const v1::JobDescription& job, const ModelSpec& model, uint32_t partitions);

}  // namespace rubato

#endif  // RUBATO_COMMON_PLACEMENT_CHECK_H_
