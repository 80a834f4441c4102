#ifndef RUBATO_COMMON_WIRE_PAYLOAD_SIZE_H_
#define RUBATO_COMMON_WIRE_PAYLOAD_SIZE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/parameter_server.pb.h"

namespace rubato {

// Whether a payload of `payload_bytes` is exactly `declared_floats` float32 values. InvalidArgument, naming `field` and
// both sizes, when it is not.
absl::Status CheckPayloadSize(absl::string_view field, uint64_t declared_floats, size_t payload_bytes);

// The same for a message whose payload of `payload_bytes` came beside it: a request's must be the gradients of its
// push_pull.chunks (nothing when examples is 0, or for another operation), an OK reply's the weights of its chunks, and
// any other reply's empty.
absl::Status CheckPayloadSize(const v1::ExchangeRequest& header, size_t payload_bytes);
absl::Status CheckPayloadSize(const v1::ExchangeReply& header, size_t payload_bytes);

}  // namespace rubato

#endif  // RUBATO_COMMON_WIRE_PAYLOAD_SIZE_H_
