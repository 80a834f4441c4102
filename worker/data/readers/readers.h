#ifndef RUBATO_WORKER_DATA_READERS_READERS_H_
#define RUBATO_WORKER_DATA_READERS_READERS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/model_spec.h"
#include "proto/job_config.pb.h"
#include "worker/data/dataset.h"

// The readers of data sources, a file each in this folder.

namespace rubato::worker {

using DatasetOr = absl::StatusOr<std::shared_ptr<const Dataset>>;

// What a reader is asked for. All of it outlives the call.
struct ReaderRequest {
  // Loaded, with its defaults (common/config).
  const v1::JobConfig& config;
  const ModelSpec& model;
  // The held-out examples; otherwise those to train with.
  bool test = false;

  int64_t memory_bytes() const { return static_cast<int64_t>(config.data().memory_bytes()); }
};

// FailedPrecondition: the config has no examples for this split.
inline absl::Status MissingSource(absl::string_view field) {
  return absl::FailedPreconditionError(absl::StrCat(field, " is not set; this task needs its examples"));
}

// InvalidArgument: the model does not choose between two classes, which the labels of `source` are.
inline absl::Status CheckTwoClasses(const ModelSpec& model, absl::string_view source) {
  if (model.has_two_classes()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("model.layers: an output of ", ShapeText(model.output),
                                                 "; expected with ", source,
                                                 ": BINARY_CROSS_ENTROPY, or SOFTMAX_CROSS_ENTROPY over 2 classes"));
}

// Each opens the source that its name says. InvalidArgument names the file or field, what was found and what was
// expected. FailedPrecondition: MissingSource. Other codes if a file cannot be read.
DatasetOr OpenIdx(const ReaderRequest& request);
DatasetOr OpenCsv(const ReaderRequest& request);
DatasetOr OpenTeacher(const ReaderRequest& request);
DatasetOr OpenCifar(const ReaderRequest& request);
DatasetOr OpenText(const ReaderRequest& request);
DatasetOr OpenCriteo(const ReaderRequest& request);
DatasetOr OpenClicks(const ReaderRequest& request);
DatasetOr OpenColumns(const ReaderRequest& request);
DatasetOr OpenLibsvm(const ReaderRequest& request);

// The source that the config has.
inline DatasetOr OpenSource(const ReaderRequest& request) {
  switch (request.config.data().source_case()) {
    case v1::DataConfig::kIdx:
      return OpenIdx(request);
    case v1::DataConfig::kCsv:
      return OpenCsv(request);
    case v1::DataConfig::kTeacher:
      return OpenTeacher(request);
    case v1::DataConfig::kCifar:
      return OpenCifar(request);
    case v1::DataConfig::kText:
      return OpenText(request);
    case v1::DataConfig::kCriteo:
      return OpenCriteo(request);
    case v1::DataConfig::kClicks:
      return OpenClicks(request);
    case v1::DataConfig::kColumns:
      return OpenColumns(request);
    case v1::DataConfig::kLibsvm:
      return OpenLibsvm(request);
    case v1::DataConfig::kClient:
      return absl::FailedPreconditionError("data.client: the job's workers are clients, which have its examples");
    case v1::DataConfig::SOURCE_NOT_SET:
      break;
  }
  return MissingSource("the source of data");
}

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DATA_READERS_READERS_H_
