#ifndef RUBATO_WORKER_DATA_TEXT_DATASET_H_
#define RUBATO_WORKER_DATA_TEXT_DATASET_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/model_spec.h"
#include "worker/data/dataset.h"

namespace rubato::worker {

struct TextOptions {
  std::string path;
  // The share of the file, at its end, that is held out. 0 <= test_fraction < 1.
  double test_fraction = 0;
  // Of the held-out part, otherwise of what comes before it.
  bool test = false;
};

// Reads a file, plain or gzip, whole into memory, as tokens of 0 to 255. Example i is the bytes from i * positions on:
// `positions` of them, the model's input, and for each the one that follows it as its class. What does not fill a last
// window is left out.
//
// InvalidArgument names the file or field, what was found and what was expected: a part that is shorter than one
// window, a model that does not give classes for each position. Other codes where the file cannot be read.
absl::StatusOr<std::shared_ptr<const Dataset>> OpenTextDataset(const TextOptions& options, const ModelSpec& model);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DATA_TEXT_DATASET_H_
