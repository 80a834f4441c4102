#ifndef RUBATO_COMMON_CONFIG_CLIENT_JOB_H_
#define RUBATO_COMMON_CONFIG_CLIENT_JOB_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/config/awaited_model.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"

// Jobs whose workers are clients: their model is a manifest, which completes the job's config
// (docs/decisions/0021). All functions are pure.

namespace rubato {

// `base`, loaded with LoadOptions::may_await_model, with what a client offers: model, data, optimizer and, if it leases
// its data, training.epochs; with all defaults, checked as every config. InvalidArgument with all errors, as
// ValidateJobConfig; FailedPrecondition if `base` does not await a model.
absl::StatusOr<v1::JobConfig> CompleteJobConfig(v1::JobConfig base, const v1::OfferModelRequest& offer);

// `base`, which awaits a model, with that of a complete config of the same job. InvalidArgument if the two do not fit.
absl::StatusOr<v1::JobConfig> WithModelOf(v1::JobConfig base, const v1::JobConfig& complete);

// In what a manifest differs from the one that is offered, at most three lines, in the manifest's order: names, shapes
// and groups by the tensors' position, then tables with what is said of them. Empty if they are the same.
//   "tensor 3: \"conv1.weight\" 8x3x5x5 in group 0, but this worker has \"conv1.bias\" 8 in group 0"
std::string FirstDifferences(const v1::Manifest& has, const v1::Manifest& offered);

// The same for all that an offer says, against the config that another one completed. The optimizer's values need not
// be the same, as they come with every push.
std::string FirstDifferences(const v1::JobConfig& config, const v1::OfferModelRequest& offer);

}  // namespace rubato

#endif  // RUBATO_COMMON_CONFIG_CLIENT_JOB_H_
