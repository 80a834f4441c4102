#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/data/readers/readers.h"
#include "worker/data/stored_bytes.h"

namespace rubato::worker {
namespace {

constexpr int64_t kChannels = 3, kPlane = 32 * 32, kImage = kChannels * kPlane;
// A label and an image.
constexpr int64_t kRecord = 1 + kImage;
constexpr int64_t kMaxExamples = std::numeric_limits<int32_t>::max();

struct CifarFile {
  std::unique_ptr<const StoredBytes> bytes;
  // The number of its first record among those of all files.
  int64_t first = 0;
};

class CifarDataset : public Dataset {
 public:
  CifarDataset(Properties properties, std::vector<CifarFile> files, const v1::CifarData& config)
      : Dataset(std::move(properties)), files_(std::move(files)) {
    for (int channel = 0; channel < kChannels; ++channel) {
      const double mean = config.mean(config.mean_size() == 1 ? 0 : channel);
      const double deviation = config.standard_deviation(config.standard_deviation_size() == 1 ? 0 : channel);
      for (int byte = 0; byte < 256; ++byte) {
        values_[channel][byte] = static_cast<float>((byte / 255.0 - mean) / deviation);
      }
    }
  }

 private:
  absl::Status ReadExamples(const int64_t* indices, int64_t n, float* inputs, int32_t* classes, float* targets,
                            uint64_t*, uint32_t*) const override {
    std::vector<uint8_t> scratch;
    for (int64_t i = 0; i < n; ++i) {
      RUBATO_ASSIGN_OR_RETURN(const uint8_t* record, Record(indices[i], &scratch));
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

  absl::StatusOr<const uint8_t*> Record(int64_t index, std::vector<uint8_t>* scratch) const {
    const auto after = std::upper_bound(files_.begin(), files_.end(), index,
                                        [](int64_t i, const CifarFile& file) { return i < file.first; });
    const CifarFile& file = *std::prev(after);
    return file.bytes->Read((index - file.first) * kRecord, kRecord, scratch);
  }

  const std::vector<CifarFile> files_;
  // What each byte of each channel becomes.
  std::array<std::array<float, 256>, kChannels> values_;
};

absl::Status CheckRecords(const std::string& path, const StoredBytes& bytes, const ModelSpec& model) {
  const int64_t size = bytes.size(), rest = size % kRecord;
  if (size == 0 || rest != 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", size, " bytes, ", size / kRecord, " records and ", rest,
                                                   " bytes more; expected: whole records of ", kRecord,
                                                   " bytes, 1 or more"));
  }
  if (model.loss == v1::ModelConfig::MEAN_SQUARED_ERROR) return absl::OkStatus();
  return bytes.Scan(0, [&](int64_t offset, const uint8_t* data, int64_t count) {
    // The first record that begins in this block.
    for (int64_t record = (offset + kRecord - 1) / kRecord; record * kRecord < offset + count; ++record) {
      const int64_t label = data[record * kRecord - offset];
      if (label < model.classes()) continue;
      return absl::InvalidArgumentError(absl::StrCat(path, ": label ", label, " of record ", record,
                                                     "; expected: 0 to ", model.classes() - 1, ", the model has ",
                                                     model.classes(), " classes"));
    }
    return absl::OkStatus();
  });
}

}  // namespace

// Files in CIFAR-10's binary format (Krizhevsky 2009): records of a class number and a 3 x 32 x 32 image. The model's
// input is that shape or flat, 3072. Labels are class numbers of the model's classes, or the one target of
// a model with a squared error.
DatasetOr OpenCifar(const ReaderRequest& request) {
  const v1::CifarData& cifar = request.config.data().cifar();
  const ModelSpec& model = request.model;
  const auto& paths = request.test ? cifar.test_paths() : cifar.train_paths();
  if (paths.empty()) return MissingSource(request.test ? "data.cifar.test_paths" : "data.cifar.train_paths");
  if (model.input != Shape{kChannels, 32, 32} && model.input != Shape{kImage}) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.input_shape: ", ShapeText(model.input), "; expected with data.cifar: 3x32x32 or ", kImage));
  }
  std::vector<CifarFile> files;
  int64_t records = 0;
  for (const std::string& path : paths) {
    CifarFile file = {.first = records};
    RUBATO_ASSIGN_OR_RETURN(file.bytes,
                            StoredBytes::OpenFile(path, request.memory_bytes(), (kMaxExamples - records) * kRecord));
    RUBATO_RETURN_IF_ERROR(CheckRecords(path, *file.bytes, model));
    records += file.bytes->size() / kRecord;
    files.push_back(std::move(file));
  }
  const bool targets = model.loss == v1::ModelConfig::MEAN_SQUARED_ERROR;
  Dataset::Properties properties = {.size = records,
                                    .input_shape = model.input,
                                    .label_kind = targets ? LabelKind::kTargets : LabelKind::kClasses,
                                    .target_elements = targets ? 1 : 0};
  return std::make_shared<const CifarDataset>(std::move(properties), std::move(files), cifar);
}

}  // namespace rubato::worker
