#ifndef RUBATO_CLIENT_SIDECAR_OFFER_H_
#define RUBATO_CLIENT_SIDECAR_OFFER_H_

#include "absl/status/status.h"
#include "client/link/model.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"

namespace rubato::client {

// A client's model as the coordinator and the servers are told of it. All functions are pure.

v1::OfferModelRequest MakeOffer(const Model& model, const v1::TaskId& task);

// With what a push of a group's tensors is applied: the values that the algorithm takes.
v1::GroupHyperparameters MakeGroup(uint32_t group, const Hyperparameters& values,
                                   v1::OptimizerConfig::Algorithm algorithm);

// Whether a job's config is that of this model. FailedPrecondition, with what differs, if it is not.
absl::Status CheckConfig(const v1::JobConfig& config, const v1::OfferModelRequest& offer);

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_SIDECAR_OFFER_H_
