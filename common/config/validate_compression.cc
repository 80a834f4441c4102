#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/config/compression.h"
#include "common/config/validate_parts.h"

namespace rubato {
namespace {

// Names in a message; a model may have hundreds.
constexpr size_t kMaxNames = 8;

void ValidateCodec(const std::string& path, const v1::CodecConfig& codec, bool pull, ErrorList* errors) {
  const bool known = v1::Codec_IsValid(codec.codec()) && codec.codec() != v1::CODEC_UNSPECIFIED;
  const bool leaves_out = codec.codec() == v1::TOP_K || codec.codec() == v1::ONE_BIT;
  if (!known || (pull && leaves_out)) {
    const std::string value = v1::Codec_IsValid(codec.codec()) ? v1::Codec_Name(codec.codec())
                                                               : absl::StrCat(static_cast<int>(codec.codec()));
    errors->Add(path + ".codec", value,
                pull
                    ? "NONE, BF16, FP16, INT8; a pull carries the weights themselves, and what TOP_K and ONE_BIT leave "
                      "out of them could not be made up for later"
                    : "NONE, BF16, FP16, INT8, TOP_K, ONE_BIT");
  }
  const double fraction = codec.fraction();
  if (codec.codec() == v1::TOP_K) {
    if (!pull)
      errors->CheckNumber(path + ".fraction", fraction, fraction > 0 && fraction <= 1, "more than 0, 1 or less");
  } else if (fraction != 0) {
    errors->Add(path + ".fraction", NumberText(fraction), "absent unless the codec is TOP_K");
  }
}

std::string AllowedNames(const ModelSpec& model) {
  std::string text = "a tensor of the model (";
  for (size_t i = 0; i < std::min(model.tensors.size(), kMaxNames); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", model.tensors[i].name);
  }
  if (model.tensors.size() > kMaxNames) text += ", ...";
  return text + "), or the beginning of names followed by '*'";
}

void ValidateTensor(const std::string& path, const std::string& tensor, const ModelSpec& model, ErrorList* errors) {
  const bool found = std::any_of(model.tensors.begin(), model.tensors.end(),
                                 [&](const TensorSpec& spec) { return MatchesTensor(tensor, spec.name); });
  if (found) return;
  errors->Add(path, absl::StrCat("\"", absl::CHexEscape(tensor), "\""), AllowedNames(model));
}

}  // namespace

void ValidateCompression(const ModelSpec* model, const v1::CompressionConfig& compression, ErrorList* errors) {
  ValidateCodec("compression.push", compression.push(), false, errors);
  ValidateCodec("compression.pull", compression.pull(), true, errors);
  for (int i = 0; i < compression.tensors_size(); ++i) {
    const v1::TensorCompression& entry = compression.tensors(i);
    const std::string path = absl::StrCat("compression.tensors[", i, "]");
    if (model != nullptr) ValidateTensor(path + ".tensor", entry.tensor(), *model, errors);
    if (entry.has_push()) ValidateCodec(path + ".push", entry.push(), false, errors);
    if (entry.has_pull()) ValidateCodec(path + ".pull", entry.pull(), true, errors);
  }
}

}  // namespace rubato
