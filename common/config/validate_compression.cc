#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/codec_traits.h"
#include "common/config/compression.h"
#include "common/config/validate_parts.h"

namespace rubato {
namespace {

// Names in a message; a model may have hundreds.
constexpr size_t kMaxNames = 8;

enum class Direction { kPush, kPull };

bool IsAllowed(const CodecTraits& traits, Direction direction, v1::TrainingConfig::Device device) {
  if (direction == Direction::kPull) return traits.valid_on_pull;
  return traits.gpu != GpuEncoder::kNone || device == v1::TrainingConfig::CPU;
}

std::string AllowedCodecs(Direction direction, v1::TrainingConfig::Device device) {
  std::string allowed;
  for (v1::Codec codec : AllCodecs()) {
    if (!IsAllowed(TraitsOf(codec), direction, device)) continue;
    absl::StrAppend(&allowed, allowed.empty() ? "" : ", ", v1::Codec_Name(codec));
  }
  if (direction == Direction::kPull) {
    const auto loses = [](const CodecTraits& traits) { return !traits.valid_on_pull; };
    absl::StrAppend(&allowed, "; a pull carries the weights themselves, and what ", CodecNames(loses, " and "),
                    " leave out of them could not be made up for later");
  }
  return allowed;
}

// What encodes a push may be a GPU unless the config says otherwise; pulls are encoded by servers.
void ValidateCodec(const std::string& path, const v1::CodecConfig& codec, Direction direction,
                   v1::TrainingConfig::Device device, ErrorList* errors) {
  const bool valid = v1::Codec_IsValid(codec.codec());
  const CodecTraits& traits = TraitsOf(codec.codec());
  if (!valid || codec.codec() == v1::CODEC_UNSPECIFIED || !IsAllowed(traits, direction, device)) {
    const std::string value = valid ? v1::Codec_Name(codec.codec()) : absl::StrCat(static_cast<int>(codec.codec()));
    errors->Add(path + ".codec", value, AllowedCodecs(direction, device));
  }
  const double fraction = codec.fraction();
  if (traits.takes_fraction()) {
    if (direction == Direction::kPush) {
      errors->CheckNumber(path + ".fraction", fraction, IsCodecFraction(fraction), kCodecFractions);
    }
  } else if (fraction != 0) {
    const auto takes = [](const CodecTraits& other) { return other.takes_fraction(); };
    errors->Add(path + ".fraction", NumberText(fraction),
                absl::StrCat("absent unless the codec is ", CodecNames(takes, " or ")));
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

void ValidateCompression(const ModelSpec* model, const v1::JobConfig& config, ErrorList* errors) {
  const v1::CompressionConfig& compression = config.compression();
  const v1::TrainingConfig::Device device = config.training().device();
  ValidateCodec("compression.push", compression.push(), Direction::kPush, device, errors);
  ValidateCodec("compression.pull", compression.pull(), Direction::kPull, device, errors);
  if (compression.off_at_first() && !CompressesPushes(config)) {
    errors->Add("compression.off_at_first", "true", "absent if compression.push encodes nothing");
  }
  for (int i = 0; i < compression.tensors_size(); ++i) {
    const v1::TensorCompression& entry = compression.tensors(i);
    const std::string path = absl::StrCat("compression.tensors[", i, "]");
    if (model != nullptr) ValidateTensor(path + ".tensor", entry.tensor(), *model, errors);
    if (entry.has_push()) ValidateCodec(path + ".push", entry.push(), Direction::kPush, device, errors);
    if (entry.has_pull()) ValidateCodec(path + ".pull", entry.pull(), Direction::kPull, device, errors);
  }
}

}  // namespace rubato
