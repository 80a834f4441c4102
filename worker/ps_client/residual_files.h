#ifndef RUBATO_WORKER_PS_CLIENT_RESIDUAL_FILES_H_
#define RUBATO_WORKER_PS_CLIENT_RESIDUAL_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model_spec.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"

// A worker's part of a checkpoint (common/storage/checkpoint.h): the error-feedback residuals of its codecs.

namespace rubato::worker {

// By chunk of the job: one value for each element, or none if the chunk's codec has no error-feedback residual.
using Residuals = std::vector<std::vector<float>*>;

// Writes nothing, and returns false, when there is nothing to keep. Errors of CheckpointWriter.
absl::StatusOr<bool> WriteResiduals(const std::string& directory, const v1::TaskId& task, const v1::JobConfig& config,
                                    const ModelSpec& spec, const v1::JobDescription& job, const Residuals& residuals);

// Reads what worker `index` of an earlier job wrote, in however many chunks. False, and residuals as they were, when
// there is nothing to fill or the worker wrote nothing. Errors of CheckpointRestorer::ReadWorker.
absl::StatusOr<bool> ReadResiduals(const std::string& directory, uint32_t index, const ModelSpec& spec,
                                   const v1::JobDescription& job, const Residuals& residuals);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_RESIDUAL_FILES_H_
