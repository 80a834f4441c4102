#ifndef RUBATO_WORKER_DATA_CSV_DATASET_H_
#define RUBATO_WORKER_DATA_CSV_DATASET_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/model_spec.h"
#include "worker/data/dataset.h"

namespace rubato::worker {

struct CsvOptions {
  std::string path;
  // Counted from 0; every other column is a feature, in order.
  int64_t label_column = 0;
  // Whether the first line is skipped.
  bool header = false;
};

// Reads a file of comma-separated numbers, plain or gzip, whole into memory: one example a line, as many features as
// the model's input has elements. Blanks around numbers, carriage returns and empty lines are skipped. The label is a
// class number below the model's number of outputs, or the one target of a model with a squared error.
//
// InvalidArgument "<path>:<line>: ..." with the column (counted from 0), what was found and what is allowed. Other
// codes where the file cannot be read.
absl::StatusOr<std::shared_ptr<const Dataset>> OpenCsvDataset(const CsvOptions& options, const ModelSpec& model);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DATA_CSV_DATASET_H_
