#include "common/wire/payload_size.h"

#include "absl/strings/str_cat.h"

namespace rubato {
namespace {

// Lengths have 32 bits and a header at most 2^20 bytes, so the sum cannot overflow.
template <typename Chunks>
uint64_t SumOfLengths(const Chunks& chunks) {
  uint64_t sum = 0;
  for (const auto& chunk : chunks) sum += chunk.length();
  return sum;
}

}  // namespace

absl::Status CheckPayloadSize(absl::string_view field, uint64_t declared_floats, size_t payload_bytes) {
  if (payload_bytes % sizeof(float) == 0 && payload_bytes / sizeof(float) == declared_floats) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, ": has ", payload_bytes, " bytes, but the chunks declare ",
                                                 declared_floats, " floats of ", sizeof(float), " bytes"));
}

absl::Status CheckPayloadSize(const v1::ExchangeRequest& header, size_t payload_bytes) {
  const v1::PushPull& push = header.push_pull();
  return CheckPayloadSize("ExchangeRequest.payload", push.examples() == 0 ? 0 : SumOfLengths(push.chunks()),
                          payload_bytes);
}

absl::Status CheckPayloadSize(const v1::ExchangeReply& header, size_t payload_bytes) {
  const bool has_weights = header.outcome() == v1::ExchangeReply::OK;
  return CheckPayloadSize("ExchangeReply.payload", has_weights ? SumOfLengths(header.chunks()) : 0, payload_bytes);
}

}  // namespace rubato
