#include "common/codec_traits.h"

#include <cmath>

#include "common/proto_enum.h"

namespace rubato {
namespace {

// Blocks of 256 elements.
constexpr int64_t Blocks(int64_t n) { return (n + 255) / 256; }

constexpr CodecTraits kNone = {.bytes = [](double, int64_t n) { return 4 * n; }, .lossy = false};

constexpr CodecTraits kHalf = {.bytes = [](double, int64_t n) { return 2 * n; }};

constexpr CodecTraits kInt8 = {.bytes = [](double, int64_t n) { return n + 4 * Blocks(n); }};

constexpr CodecTraits kTopK = {
    .bytes = [](double fraction, int64_t n) { return 4 + 8 * TopKCount(fraction, n); },
    .has_residual = true,
    .valid_on_pull = false,
    .default_fraction = 0.01,
    .has_indices = true,
    .gpu = GpuEncoder::kSorting,
};

constexpr CodecTraits kOneBit = {
    .bytes = [](double, int64_t n) { return (n + 7) / 8 + 8 * Blocks(n); },
    .has_residual = true,
    .valid_on_pull = false,
};

}  // namespace

const CodecTraits& TraitsOf(v1::Codec codec) {
  switch (codec) {
    case v1::BF16:
    case v1::FP16:
      return kHalf;
    case v1::INT8:
      return kInt8;
    case v1::TOP_K:
      return kTopK;
    case v1::ONE_BIT:
      return kOneBit;
    case v1::NONE:
    case v1::CODEC_UNSPECIFIED:
      RUBATO_NO_VALUE_OF(v1::Codec) : break;
  }
  return kNone;
}

std::vector<v1::Codec> AllCodecs() {
  std::vector<v1::Codec> all;
  const google::protobuf::EnumDescriptor* values = v1::Codec_descriptor();
  for (int i = 0; i < values->value_count(); ++i) {
    const auto codec = static_cast<v1::Codec>(values->value(i)->number());
    if (codec != v1::CODEC_UNSPECIFIED) all.push_back(codec);
  }
  return all;
}

std::string CodecNames(bool (*is_listed)(const CodecTraits&), const char* separator) {
  std::string names;
  for (v1::Codec codec : AllCodecs()) {
    if (!is_listed(TraitsOf(codec))) continue;
    if (!names.empty()) names += separator;
    names += v1::Codec_Name(codec);
  }
  return names;
}

int64_t TopKCount(double fraction, int64_t n) {
  if (n == 0) return 0;
  const double wanted = std::ceil(fraction * static_cast<double>(n));
  return wanted >= static_cast<double>(n) ? n : wanted >= 1 ? static_cast<int64_t>(wanted) : 1;
}

}  // namespace rubato
