#include "worker/data/cifar_dataset.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/data/byte_file.h"

namespace rubato::worker {
namespace {

constexpr int64_t kChannels = 3, kPlane = 32 * 32, kImage = kChannels * kPlane;
// A label and an image.
constexpr int64_t kRecord = 1 + kImage;
constexpr int64_t kMaxExamples = std::numeric_limits<int32_t>::max();

class CifarDataset : public Dataset {
 public:
  CifarDataset(Properties properties, std::vector<uint8_t> records, const CifarOptions& options)
      : Dataset(std::move(properties)), records_(std::move(records)) {
    for (int64_t channel = 0; channel < kChannels; ++channel) {
      for (int byte = 0; byte < 256; ++byte) {
        values_[channel][byte] =
            static_cast<float>((byte / 255.0 - options.mean[channel]) / options.standard_deviation[channel]);
      }
    }
  }

 private:
  absl::Status ReadExamples(const int64_t* indices, int64_t n, float* inputs, int32_t* classes,
                            float* targets) const override {
    for (int64_t i = 0; i < n; ++i) {
      const uint8_t* record = records_.data() + indices[i] * kRecord;
      for (int64_t channel = 0; channel < kChannels; ++channel) {
        const std::array<float, 256>& values = values_[channel];
        const uint8_t* plane = record + 1 + channel * kPlane;
        std::transform(plane, plane + kPlane, inputs + i * kImage + channel * kPlane,
                       [&values](uint8_t byte) { return values[byte]; });
      }
      if (label_kind() == LabelKind::kClasses) {
        classes[i] = record[0];
      } else {
        targets[i] = record[0];
      }
    }
    return absl::OkStatus();
  }

  const std::vector<uint8_t> records_;
  // What each byte of each channel becomes.
  std::array<std::array<float, 256>, kChannels> values_;
};

absl::Status CheckRecords(const std::string& path, const std::vector<uint8_t>& bytes, const ModelSpec& model) {
  const int64_t size = static_cast<int64_t>(bytes.size()), rest = size % kRecord;
  if (size == 0 || rest != 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", size, " bytes, ", size / kRecord, " records and ", rest,
                                                   " bytes more; expected: whole records of ", kRecord,
                                                   " bytes, 1 or more"));
  }
  if (model.loss == v1::ModelConfig::MEAN_SQUARED_ERROR) return absl::OkStatus();
  for (int64_t i = 0; i < size / kRecord; ++i) {
    const int64_t label = bytes[i * kRecord];
    if (label < model.classes()) continue;
    return absl::InvalidArgumentError(absl::StrCat(path, ": label ", label, " of record ", i, "; expected: 0 to ",
                                                   model.classes() - 1, ", the model has ", model.classes(),
                                                   " outputs"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Dataset>> OpenCifarDataset(const CifarOptions& options, const ModelSpec& model) {
  if (model.input != Shape{kChannels, 32, 32} && model.input != Shape{kImage}) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.input_shape: ", ShapeText(model.input), "; expected with data.cifar: 3x32x32 or ", kImage));
  }
  std::vector<uint8_t> records;
  for (const std::string& path : options.paths) {
    const int64_t left = kMaxExamples * kRecord - static_cast<int64_t>(records.size());
    RUBATO_ASSIGN_OR_RETURN(const std::vector<uint8_t> bytes, ReadWholeFile(path, left));
    RUBATO_RETURN_IF_ERROR(CheckRecords(path, bytes, model));
    records.insert(records.end(), bytes.begin(), bytes.end());
  }
  const bool targets = model.loss == v1::ModelConfig::MEAN_SQUARED_ERROR;
  Dataset::Properties properties = {.size = static_cast<int64_t>(records.size()) / kRecord,
                                    .input_shape = model.input,
                                    .label_kind = targets ? LabelKind::kTargets : LabelKind::kClasses,
                                    .target_elements = targets ? 1 : 0};
  return std::make_shared<const CifarDataset>(std::move(properties), std::move(records), options);
}

}  // namespace rubato::worker
