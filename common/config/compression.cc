#include "common/config/compression.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "common/codec_traits.h"

namespace rubato {
namespace {

const v1::TensorCompression* FindEntry(const v1::JobConfig& config, absl::string_view tensor) {
  for (const v1::TensorCompression& entry : config.compression().tensors()) {
    if (MatchesTensor(entry.tensor(), tensor)) return &entry;
  }
  return nullptr;
}

v1::CodecConfig Complete(v1::CodecConfig codec) {
  if (codec.codec() == v1::CODEC_UNSPECIFIED) codec.set_codec(v1::NONE);
  if (codec.fraction() == 0) codec.set_fraction(TraitsOf(codec.codec()).default_fraction);
  return codec;
}

}  // namespace

bool MatchesTensor(absl::string_view pattern, absl::string_view tensor) {
  return absl::ConsumeSuffix(&pattern, "*") ? absl::StartsWith(tensor, pattern) : tensor == pattern;
}

v1::CodecConfig PushCodec(const v1::JobConfig& config, absl::string_view tensor) {
  const v1::TensorCompression* entry = FindEntry(config, tensor);
  return Complete(entry != nullptr && entry->has_push() ? entry->push() : config.compression().push());
}

bool CompressesPushes(const v1::JobConfig& config) {
  const v1::CompressionConfig& compression = config.compression();
  const auto encodes = [](const v1::CodecConfig& push) { return Complete(push).codec() != v1::NONE; };
  return encodes(compression.push()) ||
         std::ranges::any_of(compression.tensors(),
                             [&](const v1::TensorCompression& entry) { return encodes(entry.push()); });
}

v1::CodecConfig PullCodec(const v1::JobConfig& config, absl::string_view tensor) {
  const v1::TensorCompression* entry = FindEntry(config, tensor);
  return Complete(entry != nullptr && entry->has_pull() ? entry->pull() : config.compression().pull());
}

}  // namespace rubato
