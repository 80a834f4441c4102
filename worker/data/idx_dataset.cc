#include "worker/data/idx_dataset.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "worker/data/byte_file.h"

namespace rubato::worker {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 48;

struct IdxFile {
  Shape dimensions;
  std::vector<uint8_t> bytes;
};

std::string Dimensions(const Shape& shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

uint32_t BigEndian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

absl::Status BadFile(const ByteFile& file, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(file.path(), ": ", why));
}

// Magic number (two zeros, the type, the number of dimensions), then the dimensions.
absl::StatusOr<Shape> ReadHeader(int lowest_rank, int highest_rank, ByteFile* file) {
  uint8_t word[4];
  RUBATO_ASSIGN_OR_RETURN(const int64_t magic_bytes, file->Read(word, 4));
  if (magic_bytes < 4) return BadFile(*file, absl::StrCat("truncated: ", magic_bytes, " bytes, no IDX header"));
  const uint32_t magic = BigEndian(word);
  constexpr uint32_t kUnsignedBytes = 0x0800;
  const int rank = word[3];
  if ((magic & 0xffffff00u) != kUnsignedBytes || rank < lowest_rank || rank > highest_rank) {
    std::string expected = absl::StrFormat("0x%08x", kUnsignedBytes + lowest_rank);
    for (int i = lowest_rank + 1; i <= highest_rank; ++i)
      absl::StrAppendFormat(&expected, ", 0x%08x", kUnsignedBytes + i);
    return BadFile(*file, absl::StrFormat("magic number 0x%08x; expected for %s: %s (IDX of unsigned bytes)", magic,
                                          lowest_rank == 1 ? "labels" : "images", expected));
  }
  Shape dimensions;
  int64_t elements = 1;
  for (int i = 0; i < rank; ++i) {
    RUBATO_ASSIGN_OR_RETURN(const int64_t count, file->Read(word, 4));
    if (count < 4) return BadFile(*file, absl::StrCat("truncated in the header, after dimension ", i, " of ", rank));
    dimensions.push_back(BigEndian(word));
    if (dimensions[i] == 0) return BadFile(*file, absl::StrCat("dimension ", i, " is 0; expected: 1 or more"));
    if (dimensions[i] > kMaxBytes / elements || dimensions[0] > std::numeric_limits<int32_t>::max()) {
      return BadFile(*file, absl::StrCat("dimensions ", Dimensions(dimensions),
                                         "; expected: at most 2^31-1 examples and 2^48 bytes"));
    }
    elements *= dimensions[i];
  }
  return dimensions;
}

absl::StatusOr<IdxFile> ReadIdx(const std::string& path, int lowest_rank, int highest_rank) {
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<ByteFile> file, ByteFile::Open(path));
  IdxFile idx;
  RUBATO_ASSIGN_OR_RETURN(idx.dimensions, ReadHeader(lowest_rank, highest_rank, file.get()));
  const int64_t size = NumElements(idx.dimensions);
  // The memory grows with what the file really holds, not with what its header claims.
  for (int64_t done = 0; done < size;) {
    const int64_t step = std::min(size - done, std::max<int64_t>(done, 1 << 20));
    idx.bytes.resize(done + step);
    RUBATO_ASSIGN_OR_RETURN(const int64_t count, file->Read(idx.bytes.data() + done, step));
    done += count;
    if (count < step) {
      return BadFile(*file, absl::StrCat("truncated: ", done, " bytes after the header; expected: ", size,
                                         " for dimensions ", Dimensions(idx.dimensions)));
    }
  }
  uint8_t extra;
  RUBATO_ASSIGN_OR_RETURN(const int64_t extra_bytes, file->Read(&extra, 1));
  if (extra_bytes > 0) {
    return BadFile(*file, absl::StrCat("bytes follow the last example; expected: ", size,
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
  IdxDataset(Properties properties, std::vector<uint8_t> images, std::vector<uint8_t> labels, const IdxOptions& options)
      : Dataset(std::move(properties)), images_(std::move(images)), labels_(std::move(labels)) {
    for (int byte = 0; byte < 256; ++byte) {
      values_[byte] = static_cast<float>((byte / 255.0 - options.mean) / options.standard_deviation);
    }
  }

 private:
  absl::Status ReadExamples(const int64_t* indices, int64_t n, float* inputs, int32_t* classes,
                            float* targets) const override {
    const int64_t elements = input_elements();
    for (int64_t i = 0; i < n; ++i) {
      const uint8_t* image = images_.data() + indices[i] * elements;
      std::transform(image, image + elements, inputs + i * elements, [this](uint8_t byte) { return values_[byte]; });
      const uint8_t label = labels_[indices[i]];
      if (label_kind() == LabelKind::kClasses) {
        classes[i] = label;
      } else {
        targets[i] = label;
      }
    }
    return absl::OkStatus();
  }

  const std::vector<uint8_t> images_;
  const std::vector<uint8_t> labels_;
  // What each byte becomes.
  std::array<float, 256> values_;
};

absl::Status CheckPair(const IdxOptions& options, const IdxFile& images, const IdxFile& labels,
                       const ModelSpec& model) {
  const Shape image(images.dimensions.begin() + 1, images.dimensions.end());
  if (!Fits(image, model.input)) {
    return absl::InvalidArgumentError(absl::StrCat(options.images, ": images of ", Dimensions(image),
                                                   "; expected: model.input_shape, ", Dimensions(model.input)));
  }
  if (images.dimensions[0] != labels.dimensions[0]) {
    return absl::InvalidArgumentError(absl::StrCat(options.labels, ": ", labels.dimensions[0], " labels; expected: ",
                                                   images.dimensions[0], ", the number of images in ", options.images));
  }
  if (model.loss == v1::ModelConfig::MEAN_SQUARED_ERROR) return absl::OkStatus();
  const int64_t classes = NumElements(model.output);
  for (size_t i = 0; i < labels.bytes.size(); ++i) {
    if (labels.bytes[i] >= classes) {
      return absl::InvalidArgumentError(absl::StrCat(options.labels, ": label ", labels.bytes[i], " of example ", i,
                                                     "; expected: 0 to ", classes - 1, ", the model has ", classes,
                                                     " outputs"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Dataset>> OpenIdxDataset(const IdxOptions& options, const ModelSpec& model) {
  RUBATO_ASSIGN_OR_RETURN(IdxFile images, ReadIdx(options.images, 2, 4));
  RUBATO_ASSIGN_OR_RETURN(IdxFile labels, ReadIdx(options.labels, 1, 1));
  RUBATO_RETURN_IF_ERROR(CheckPair(options, images, labels, model));
  const bool targets = model.loss == v1::ModelConfig::MEAN_SQUARED_ERROR;
  Dataset::Properties properties = {.size = images.dimensions[0],
                                    .input_shape = model.input,
                                    .label_kind = targets ? LabelKind::kTargets : LabelKind::kClasses,
                                    .target_elements = targets ? 1 : 0};
  return std::make_shared<const IdxDataset>(std::move(properties), std::move(images.bytes), std::move(labels.bytes),
                                            options);
}

}  // namespace rubato::worker
