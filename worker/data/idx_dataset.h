#ifndef RUBATO_WORKER_DATA_IDX_DATASET_H_
#define RUBATO_WORKER_DATA_IDX_DATASET_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/model_spec.h"
#include "worker/data/dataset.h"

namespace rubato::worker {

struct IdxOptions {
  std::string images;
  std::string labels;
  // An input is (byte / 255 - mean) / standard_deviation.
  double mean = 0;
  double standard_deviation = 1;
};

// Reads a pair of IDX files of unsigned bytes, plain or gzip, whole into memory, and keeps them as bytes. Images have 2
// to 4 dimensions, the first of which counts them; the others fit an input shape that is the same but for dimensions
// of 1 ({1, 28, 28} for images of 28 x 28) or flat ({784}). Labels are class numbers below the model's number of
// outputs, or the one target of a model with a squared error.
//
// InvalidArgument names the file, what was found and what was expected: another magic number, sizes that do not
// agree, too few or too many bytes, a label out of range. Other codes where a file cannot be read.
absl::StatusOr<std::shared_ptr<const Dataset>> OpenIdxDataset(const IdxOptions& options, const ModelSpec& model);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DATA_IDX_DATASET_H_
