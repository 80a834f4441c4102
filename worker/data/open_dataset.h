#ifndef RUBATO_WORKER_DATA_OPEN_DATASET_H_
#define RUBATO_WORKER_DATA_OPEN_DATASET_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/model_spec.h"
#include "proto/job_config.pb.h"
#include "worker/data/dataset.h"

namespace rubato::worker {

enum class Split { kTrain, kTest };

// Opens the data that a loaded config names (common/config). FailedPrecondition when the config names none for the
// split. InvalidArgument: the data does not fit the model. Otherwise the errors of the source's reader
// (readers/readers.h).
absl::StatusOr<std::shared_ptr<const Dataset>> OpenDataset(const v1::JobConfig& config, const ModelSpec& model,
                                                           Split split);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DATA_OPEN_DATASET_H_
