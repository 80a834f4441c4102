#ifndef RUBATO_COMMON_SHARED_MEMORY_HELLO_H_
#define RUBATO_COMMON_SHARED_MEMORY_HELLO_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/parameter_server.pb.h"

namespace rubato {

// The two packets of the handshake, both with one descriptor of shared memory unless they refuse. Both ends are on one
// host, so numbers are in its byte order. Bytes 0-7 are "rubatoSM" and 8-11 the version in every version.
//
// worker to server, 32 bytes:  12 role (uint32, TaskId.Role), 16 index (uint32), 20 zero (uint32),
//                              24 incarnation (uint64)
// server to worker, 256 bytes: 12 code (uint32, 0 or a canonical status code), 16 session (uint64, 0 in a refusal),
//                              24 why it refuses, padded with zeros
inline constexpr uint32_t kHelloVersion = 1;

std::string EncodeHello(const v1::TaskId& task);
// InvalidArgument: it is none, is of another version, is cut off, or its task is no worker or evaluator.
absl::StatusOr<v1::TaskId> DecodeHello(absl::string_view bytes);

// The session, or why there is none (its message cut to 231 bytes).
std::string EncodeWelcome(const absl::StatusOr<uint64_t>& session);
// The same again, "refused: " before the server's message. InvalidArgument also when the bytes are no welcome.
absl::StatusOr<uint64_t> DecodeWelcome(absl::string_view bytes);

}  // namespace rubato

#endif  // RUBATO_COMMON_SHARED_MEMORY_HELLO_H_
