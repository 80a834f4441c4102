#ifndef RUBATO_WORKER_DATA_CIFAR_DATASET_H_
#define RUBATO_WORKER_DATA_CIFAR_DATASET_H_

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model_spec.h"
#include "worker/data/dataset.h"

namespace rubato::worker {

struct CifarOptions {
  std::vector<std::string> paths;
  // By channel: an input is (byte / 255 - mean) / standard_deviation.
  std::array<double, 3> mean = {};
  std::array<double, 3> standard_deviation = {1, 1, 1};
};

// Reads files in CIFAR-10's binary format (Krizhevsky 2009), plain or gzip, whole into memory, and keeps them as bytes:
// records of a class number and a 3 x 32 x 32 image. The model's input is that shape or flat, 3072. Labels are class
// numbers below the model's number of outputs, or the one target of a model with a squared error.
//
// InvalidArgument names the file, what was found and what was expected: a last record that is cut short, a file without
// records, a label out of range, another input shape. Other codes where a file cannot be read.
absl::StatusOr<std::shared_ptr<const Dataset>> OpenCifarDataset(const CifarOptions& options, const ModelSpec& model);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DATA_CIFAR_DATASET_H_
