#include "absl/strings/str_cat.h"
#include "kernels/codec/codec.h"
#include "kernels/codec/implementation.h"

namespace rubato {

absl::Status CheckEncoded(v1::Codec codec, const uint8_t* data, int64_t bytes, int64_t n) {
  if (!v1::Codec_IsValid(codec)) {
    return absl::InvalidArgumentError(absl::StrCat("codec: ", static_cast<int>(codec), " is unknown; allowed are 0 to ",
                                                   static_cast<int>(v1::Codec_MAX)));
  }
  const int64_t expected = MaxEncodedBytes({codec}, n);
  if (!TraitsOf(codec).takes_fraction() && bytes != expected) {
    const v1::Codec named = codec == v1::CODEC_UNSPECIFIED ? v1::NONE : codec;
    return absl::InvalidArgumentError(absl::StrCat("encoded_bytes: ", bytes, " where ", v1::Codec_Name(named),
                                                   " takes ", expected, " for ", n, " elements"));
  }
  const auto check = codec::ImplementationOf(codec).check;
  return check == nullptr ? absl::OkStatus() : check(data, bytes, n);
}

}  // namespace rubato
