#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "worker/data/readers/readers.h"
#include "worker/data/stored_bytes.h"

namespace rubato::worker {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 48;

struct IdxFile {
  std::string path;
  Shape dimensions;
  // Header and payload, and where the payload begins.
  std::unique_ptr<const StoredBytes> bytes;
  int64_t payload = 0;
};

std::string Dimensions(const Shape& shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

uint32_t BigEndian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

absl::Status BadFile(const IdxFile& file, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(file.path, ": ", why));
}

absl::Status CheckMagic(const IdxFile& file, uint32_t magic, int lowest_rank, int highest_rank) {
  constexpr uint32_t kUnsignedBytes = 0x0800;
  const int rank = static_cast<int>(magic & 0xff);
  if ((magic & 0xffffff00u) == kUnsignedBytes && rank >= lowest_rank && rank <= highest_rank) return absl::OkStatus();
  std::string expected = absl::StrFormat("0x%08x", kUnsignedBytes + lowest_rank);
  for (int i = lowest_rank + 1; i <= highest_rank; ++i) {
    absl::StrAppendFormat(&expected, ", 0x%08x", kUnsignedBytes + i);
  }
  return BadFile(file, absl::StrFormat("magic number 0x%08x; expected for %s: %s (IDX of unsigned bytes)", magic,
                                       lowest_rank == 1 ? "labels" : "images", expected));
}

// Magic number (two zeros, the type, the number of dimensions), then the dimensions.
absl::Status ReadHeader(int lowest_rank, int highest_rank, IdxFile* file) {
  const int64_t size = file->bytes->size();
  if (size < 4) return BadFile(*file, absl::StrCat("truncated: ", size, " bytes, no IDX header"));
  std::vector<uint8_t> scratch;
  RUBATO_ASSIGN_OR_RETURN(const uint8_t* word, file->bytes->Read(0, 4, &scratch));
  const uint32_t magic = BigEndian(word);
  RUBATO_RETURN_IF_ERROR(CheckMagic(*file, magic, lowest_rank, highest_rank));
  const int64_t rank = magic & 0xff;
  file->payload = 4 + 4 * rank;
  if (size < file->payload) {
    return BadFile(*file, absl::StrCat("truncated in the header, after dimension ", size / 4 - 1, " of ", rank));
  }
  int64_t elements = 1;
  for (int64_t i = 0; i < rank; ++i) {
    RUBATO_ASSIGN_OR_RETURN(word, file->bytes->Read(4 + 4 * i, 4, &scratch));
    Shape& dimensions = file->dimensions;
    dimensions.push_back(BigEndian(word));
    if (dimensions[i] == 0) return BadFile(*file, absl::StrCat("dimension ", i, " is 0; expected: 1 or more"));
    if (dimensions[i] > kMaxBytes / elements || dimensions[0] > std::numeric_limits<int32_t>::max()) {
      return BadFile(*file, absl::StrCat("dimensions ", Dimensions(dimensions),
                                         "; expected: at most 2^31-1 examples and 2^48 bytes"));
    }
    elements *= dimensions[i];
  }
  return absl::OkStatus();
}

absl::StatusOr<IdxFile> ReadIdx(const std::string& path, int lowest_rank, int highest_rank, int64_t memory_bytes) {
  IdxFile idx = {.path = path};
  RUBATO_ASSIGN_OR_RETURN(idx.bytes, StoredBytes::OpenFile(path, memory_bytes, 2 * kMaxBytes));
  RUBATO_RETURN_IF_ERROR(ReadHeader(lowest_rank, highest_rank, &idx));
  const int64_t expected = NumElements(idx.dimensions), found = idx.bytes->size() - idx.payload;
  if (found < expected) {
    return BadFile(idx, absl::StrCat("truncated: ", found, " bytes after the header; expected: ", expected,
                                     " for dimensions ", Dimensions(idx.dimensions)));
  }
  if (found > expected) {
    return BadFile(idx, absl::StrCat("bytes follow the last example; expected: ", expected,
                                     " after the header for dimensions ", Dimensions(idx.dimensions)));
  }
  return idx;
}

Shape WithoutOnes(Shape shape) {
  shape.erase(std::remove(shape.begin(), shape.end(), 1), shape.end());
  return shape;
}

// Whether images of this shape are inputs of that one.
bool Fits(const Shape& image, const Shape& input) {
  if (input.size() == 1) return NumElements(image) == input[0];
  return WithoutOnes(image) == WithoutOnes(input);
}

class IdxDataset : public Dataset {
 public:
  IdxDataset(Properties properties, IdxFile images, IdxFile labels, const v1::IdxData& config)
      : Dataset(std::move(properties)), images_(std::move(images)), labels_(std::move(labels)) {
    for (int byte = 0; byte < 256; ++byte) {
      values_[byte] = static_cast<float>((byte / 255.0 - config.mean()) / config.standard_deviation());
    }
  }

 private:
  absl::Status ReadExamples(const int64_t* indices, int64_t n, float* inputs, int32_t* classes, float* targets,
                            uint64_t*, uint32_t*) const override {
    const int64_t elements = input_elements();
    std::vector<uint8_t> scratch;
    for (int64_t i = 0; i < n; ++i) {
      RUBATO_ASSIGN_OR_RETURN(const uint8_t* image,
                              images_.bytes->Read(images_.payload + indices[i] * elements, elements, &scratch));
      std::transform(image, image + elements, inputs + i * elements, [this](uint8_t byte) { return values_[byte]; });
      RUBATO_ASSIGN_OR_RETURN(const uint8_t* label, labels_.bytes->Read(labels_.payload + indices[i], 1, &scratch));
      if (label_kind() == LabelKind::kClasses) {
        classes[i] = *label;
      } else {
        targets[i] = *label;
      }
    }
    return absl::OkStatus();
  }

  const IdxFile images_;
  const IdxFile labels_;
  // What each byte becomes.
  std::array<float, 256> values_;
};

absl::Status CheckLabels(const IdxFile& labels, int64_t classes) {
  return labels.bytes->Scan(labels.payload, [&](int64_t offset, const uint8_t* data, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      if (data[i] < classes) continue;
      return BadFile(labels, absl::StrCat("label ", data[i], " of example ", offset - labels.payload + i,
                                          "; expected: 0 to ", classes - 1, ", the model has ", classes, " classes"));
    }
    return absl::OkStatus();
  });
}

absl::Status CheckPair(const IdxFile& images, const IdxFile& labels, const ModelSpec& model) {
  const Shape image(images.dimensions.begin() + 1, images.dimensions.end());
  if (!Fits(image, model.input)) {
    return BadFile(images, absl::StrCat("images of ", Dimensions(image), "; expected: model.input_shape, ",
                                        Dimensions(model.input)));
  }
  if (images.dimensions[0] != labels.dimensions[0]) {
    return BadFile(labels, absl::StrCat(labels.dimensions[0], " labels; expected: ", images.dimensions[0],
                                        ", the number of images in ", images.path));
  }
  if (model.loss == v1::ModelConfig::MEAN_SQUARED_ERROR) return absl::OkStatus();
  return CheckLabels(labels, model.classes());
}

}  // namespace

// A pair of IDX files of unsigned bytes. Images have 2 to 4 dimensions, the first of which counts them; the others fit
// an input shape that is the same but for dimensions of 1 ({1, 28, 28} for images of 28 x 28) or flat ({784}). Labels
// are class numbers of the model's classes, or the one target of a model with a squared error.
DatasetOr OpenIdx(const ReaderRequest& request) {
  const v1::IdxData& idx = request.config.data().idx();
  const std::string& images_path = request.test ? idx.test_images() : idx.train_images();
  const std::string& labels_path = request.test ? idx.test_labels() : idx.train_labels();
  if (images_path.empty()) return MissingSource(request.test ? "data.idx.test_images" : "data.idx.train_images");
  if (labels_path.empty()) return MissingSource(request.test ? "data.idx.test_labels" : "data.idx.train_labels");
  RUBATO_ASSIGN_OR_RETURN(IdxFile images, ReadIdx(images_path, 2, 4, request.memory_bytes()));
  RUBATO_ASSIGN_OR_RETURN(IdxFile labels, ReadIdx(labels_path, 1, 1, request.memory_bytes()));
  RUBATO_RETURN_IF_ERROR(CheckPair(images, labels, request.model));
  const bool targets = request.model.loss == v1::ModelConfig::MEAN_SQUARED_ERROR;
  Dataset::Properties properties = {.size = images.dimensions[0],
                                    .input_shape = request.model.input,
                                    .label_kind = targets ? LabelKind::kTargets : LabelKind::kClasses,
                                    .target_elements = targets ? 1 : 0};
  return std::make_shared<const IdxDataset>(std::move(properties), std::move(images), std::move(labels), idx);
}

}  // namespace rubato::worker
