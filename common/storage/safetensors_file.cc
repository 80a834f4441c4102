#include "common/storage/safetensors_file.h"

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

// The most that the format allows, so that a file of something else cannot ask for all memory.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
// Errors that are named one by one; a message has to fit into a status.
constexpr size_t kMaxErrors = 50;
constexpr int64_t kElementsAtOnce = 1 << 16;

// Of an element, or 0 if it is of a type that is not read.
uint64_t ElementBytes(absl::string_view dtype) {
  if (dtype == "F32") return 4;
  return dtype == "F16" || dtype == "BF16" ? 2 : 0;
}

// IEEE 754 binary16.
float FromHalf(uint16_t bits) {
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  const int exponent = (bits >> 10) & 31, fraction = bits & 0x3ff;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  if (exponent < 31) return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  return fraction == 0 ? sign * std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
}

// The upper half of a float32.
float FromBfloat16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

std::string Describe(const Shape& shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

// An array of whole numbers that are not negative.
std::optional<std::vector<uint64_t>> Numbers(const nlohmann::json& value) {
  if (!value.is_array()) return std::nullopt;
  std::vector<uint64_t> numbers;
  for (const nlohmann::json& number : value) {
    if (!number.is_number_unsigned()) return std::nullopt;
    numbers.push_back(number.get<uint64_t>());
  }
  return numbers;
}

// Elements of a shape, or nothing if they are more than any file has.
std::optional<uint64_t> ElementsOf(const Shape& shape) {
  uint64_t elements = 1;
  for (int64_t dimension : shape) {
    const auto factor = static_cast<uint64_t>(dimension);
    if (factor != 0 && elements > (uint64_t{1} << 60) / factor) return std::nullopt;
    elements *= factor;
  }
  return elements;
}

}  // namespace

bool IsSafetensorsPath(absl::string_view path) { return absl::EndsWith(path, ".safetensors"); }

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  RUBATO_ASSIGN_OR_RETURN(const uint64_t bytes, FileBytes(path));
  File file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (file == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  SafetensorsFile opened(path, std::move(file));
  RUBATO_RETURN_IF_ERROR(opened.ReadHeader(bytes));
  return opened;
}

absl::Status SafetensorsFile::Bad(absl::string_view why) const {
  return absl::DataLossError(absl::StrCat(path_, ": no safetensors file: ", why));
}

absl::Status SafetensorsFile::ReadBytes(uint64_t at, size_t bytes, void* out) {
  errno = 0;
  if (fseeko(file_.get(), static_cast<off_t>(at), SEEK_SET) == 0 && std::fread(out, 1, bytes, file_.get()) == bytes) {
    return absl::OkStatus();
  }
  if (errno != 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path_));
  return absl::DataLossError(absl::StrCat(path_, ": ends before byte ", at + bytes));
}

absl::Status SafetensorsFile::ReadHeader(uint64_t file_bytes) {
  std::array<uint8_t, 8> prefix;
  if (file_bytes < prefix.size()) return Bad(absl::StrCat("it has ", file_bytes, " bytes"));
  RUBATO_RETURN_IF_ERROR(ReadBytes(0, prefix.size(), prefix.data()));
  uint64_t length = 0;
  for (size_t i = 0; i < prefix.size(); ++i) length |= uint64_t{prefix[i]} << (8 * i);
  if (length > kMaxHeaderBytes || length > file_bytes - prefix.size()) {
    return Bad(absl::StrCat("its header would have ", length, " bytes"));
  }
  std::string text(length, '\0');
  RUBATO_RETURN_IF_ERROR(ReadBytes(prefix.size(), text.size(), text.data()));
  const auto header = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) return Bad("its header is not a JSON object");
  const uint64_t data = prefix.size() + length, data_bytes = file_bytes - data;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") continue;
    const auto field = [&, &entry = value](const char* key) {
      return entry.is_object() && entry.contains(key) ? entry[key] : nlohmann::json();
    };
    const nlohmann::json dtype = field("dtype");
    const auto shape = Numbers(field("shape")), offsets = Numbers(field("data_offsets"));
    if (!dtype.is_string() || !shape || !offsets || offsets->size() != 2) {
      return Bad(absl::StrCat("tensor ", name, " has no dtype, shape and data_offsets"));
    }
    const uint64_t begin = offsets->front(), end = offsets->back();
    if (begin > end || end > data_bytes) {
      return Bad(absl::StrCat("tensor ", name, " is at ", begin, " to ", end, " of ", data_bytes, " bytes of data"));
    }
    Tensor tensor = {.name = name, .dtype = dtype.get<std::string>(), .begin = data + begin, .bytes = end - begin};
    for (uint64_t dimension : *shape) tensor.shape.push_back(static_cast<int64_t>(dimension));
    const std::optional<uint64_t> elements = ElementsOf(tensor.shape);
    const uint64_t element_bytes = ElementBytes(tensor.dtype);
    if (!elements || (element_bytes != 0 && *elements * element_bytes != tensor.bytes)) {
      return Bad(absl::StrCat("tensor ", name, " of ", tensor.dtype, " ", Describe(tensor.shape), " has ", tensor.bytes,
                              " bytes"));
    }
    tensors_.push_back(std::move(tensor));
  }
  std::sort(tensors_.begin(), tensors_.end(), [](const Tensor& a, const Tensor& b) { return a.name < b.name; });
  return absl::OkStatus();
}

const SafetensorsFile::Tensor* SafetensorsFile::Find(absl::string_view name) const {
  const auto found =
      std::lower_bound(tensors_.begin(), tensors_.end(), name,
                       [](const Tensor& tensor, absl::string_view wanted) { return tensor.name < wanted; });
  return found != tensors_.end() && found->name == name ? &*found : nullptr;
}

absl::Status SafetensorsFile::CheckFits(const ModelSpec& model) const {
  std::vector<std::string> errors;
  std::vector<std::string> known;
  for (const TensorSpec& wanted : model.tensors) {
    known.push_back(wanted.name);
    const Tensor* const tensor = Find(wanted.name);
    if (tensor == nullptr) {
      errors.push_back(absl::StrCat(wanted.name, ": missing"));
    } else if (tensor->shape != wanted.shape) {
      errors.push_back(
          absl::StrCat(wanted.name, ": shape ", Describe(tensor->shape), ", the job's is ", Describe(wanted.shape)));
    } else if (ElementBytes(tensor->dtype) == 0) {
      errors.push_back(absl::StrCat(wanted.name, ": dtype ", tensor->dtype, "; allowed: F32, F16, BF16"));
    }
  }
  std::sort(known.begin(), known.end());
  for (const Tensor& tensor : tensors_) {
    if (!std::binary_search(known.begin(), known.end(), tensor.name)) {
      errors.push_back(absl::StrCat(tensor.name, ": not in the job's model"));
    }
  }
  if (errors.empty()) return absl::OkStatus();
  if (errors.size() > kMaxErrors) {
    const size_t more = errors.size() - kMaxErrors;
    errors.resize(kMaxErrors);
    errors.push_back(absl::StrCat("and ", more, " more"));
  }
  return absl::FailedPreconditionError(absl::StrCat(path_, ": ", absl::StrJoin(errors, "; ")));
}

absl::Status SafetensorsFile::Read(absl::string_view name, int64_t offset, int64_t count, float* out) {
  const Tensor* const tensor = Find(name);
  const uint64_t element_bytes = tensor == nullptr ? 0 : ElementBytes(tensor->dtype);
  if (element_bytes == 0) {
    return absl::FailedPreconditionError(absl::StrCat(path_, ": ", name, ": missing, or not F32, F16 or BF16"));
  }
  const auto elements = static_cast<int64_t>(tensor->bytes / element_bytes);
  if (offset < 0 || count < 0 || offset > elements - count) {
    return absl::OutOfRangeError(
        absl::StrCat(path_, ": ", name, ": elements ", offset, " to ", offset + count, " are not in its ", elements));
  }
  const uint64_t begin = tensor->begin + static_cast<uint64_t>(offset) * element_bytes;
  if (element_bytes == sizeof(float)) return ReadBytes(begin, static_cast<size_t>(count) * sizeof(float), out);
  const auto convert = tensor->dtype == "F16" ? &FromHalf : &FromBfloat16;
  std::vector<uint16_t> block(static_cast<size_t>(std::min(count, kElementsAtOnce)));
  for (int64_t done = 0; done < count;) {
    const int64_t n = std::min(count - done, kElementsAtOnce);
    RUBATO_RETURN_IF_ERROR(
        ReadBytes(begin + 2 * static_cast<uint64_t>(done), 2 * static_cast<size_t>(n), block.data()));
    std::transform(block.begin(), block.begin() + n, out + done, convert);
    done += n;
  }
  return absl::OkStatus();
}

}  // namespace rubato
