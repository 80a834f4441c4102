#ifndef RUBATO_CLI_PREDICT_PREDICT_H_
#define RUBATO_CLI_PREDICT_PREDICT_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/log.h"
#include "worker/device/backend_choice.h"

namespace rubato {

struct PredictOptions {
  std::string run_directory;
  // As in FindCheckpoint; empty: the run's last weights.
  std::string checkpoint;
  // A file in the format of the job's data, labels included.
  std::string input;
  // "path=value", which change the run's config: where and how to compute.
  std::vector<std::string> overrides;
  worker::BackendFactory factory;
  Logger* log = nullptr;
};

struct PredictReport {
  std::string checkpoint;
  int64_t examples = 0;
};

// Writes what the weights and tables of a run's checkpoint say of each example of a file, a line for each, in the
// file's order: with BINARY_CROSS_ENTROPY the probability of class 1, with SOFTMAX_CROSS_ENTROPY the class with the
// highest probability, a comma, and that, and with MEAN_SQUARED_ERROR the number. Keys that the tables do not have read
// as their initial weights, as in an evaluation. Nothing of the run changes. Beside the model it takes the memory of a
// batch of evaluation.batch_size and data.memory_bytes of the file.
// Errors: NotFound: no such run or checkpoint. InvalidArgument: the override, the file, or the job's source of data,
// which has not one file of examples. FailedPrecondition: the job's workers are clients; the checkpoint is of another
// model. Those of reading and of the device.
absl::StatusOr<PredictReport> Predict(const PredictOptions& options, std::ostream* out);

}  // namespace rubato

#endif  // RUBATO_CLI_PREDICT_PREDICT_H_
