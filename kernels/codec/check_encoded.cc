#include "absl/strings/str_cat.h"
#include "kernels/codec/codec.h"
#include "kernels/codec/layout.h"

namespace rubato {
namespace {

absl::Status Invalid(absl::string_view message) { return absl::InvalidArgumentError(message); }

absl::Status CheckTopK(const uint8_t* data, int64_t bytes, int64_t n) {
  if (bytes < codec::TopKBytes(0)) {
    return Invalid(absl::StrCat("encoded_bytes: ", bytes, " where TOP_K takes 4 or more"));
  }
  const int64_t sent = codec::LoadU32(data);
  if (sent > n) return Invalid(absl::StrCat("payload: ", sent, " elements where the chunk has ", n));
  if (bytes != codec::TopKBytes(sent)) {
    return Invalid(absl::StrCat("encoded_bytes: ", bytes, " where TOP_K takes ", codec::TopKBytes(sent), " for ", sent,
                                " elements"));
  }
  int64_t before = -1;
  for (int64_t i = 0; i < sent; ++i) {
    const int64_t index = codec::LoadU32(data + 4 + 4 * i);
    if (index <= before) {
      return Invalid(absl::StrCat("payload: index ", index, " at ", i, " is not above the one before, ", before));
    }
    if (index >= n) return Invalid(absl::StrCat("payload: index ", index, " at ", i, " where the chunk has ", n));
    before = index;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckEncoded(v1::Codec codec, const uint8_t* data, int64_t bytes, int64_t n) {
  if (!v1::Codec_IsValid(codec)) {
    return Invalid(absl::StrCat("codec: ", static_cast<int>(codec), " is unknown; allowed are 0 to ",
                                static_cast<int>(v1::Codec_MAX)));
  }
  if (codec == v1::TOP_K) return CheckTopK(data, bytes, n);
  const int64_t expected = MaxEncodedBytes({codec}, n);
  if (bytes != expected) {
    const v1::Codec named = codec == v1::CODEC_UNSPECIFIED ? v1::NONE : codec;
    return Invalid(absl::StrCat("encoded_bytes: ", bytes, " where ", v1::Codec_Name(named), " takes ", expected,
                                " for ", n, " elements"));
  }
  if (codec == v1::ONE_BIT && n % 8 != 0 && data[bytes - 1] >> (n % 8) != 0) {
    return Invalid("payload: bits after the last element are not zero");
  }
  return absl::OkStatus();
}

}  // namespace rubato
