#ifndef RUBATO_WORKER_PS_CLIENT_JOB_OPTIONS_H_
#define RUBATO_WORKER_PS_CLIENT_JOB_OPTIONS_H_

#include <vector>

#include "common/model_spec.h"
#include "kernels/codec/codec.h"
#include "proto/job_config.pb.h"
#include "worker/ps_client/ps_client.h"

namespace rubato::worker {

// What a job's config says about its workers' parameter clients; the rest of the options is for the caller to fill in.
// Both are pure.
PsClient::Options PsClientOptions(const v1::JobConfig& config, const ModelSpec& spec);

// By tensor: how its gradients are encoded.
std::vector<CodecSpec> PushCodecs(const v1::JobConfig& config, const ModelSpec& spec);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_JOB_OPTIONS_H_
