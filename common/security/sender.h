#ifndef RUBATO_COMMON_SECURITY_SENDER_H_
#define RUBATO_COMMON_SECURITY_SENDER_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "common/security/identity.h"
#include "proto/parameter_server.pb.h"

namespace rubato {

Party PartyOf(v1::TaskId::Role role);

// Whether what a message says of its sender is what the connection's certificate says; OK if there was none.
// PermissionDenied: it is not; the message has both.
absl::Status CheckSender(const std::optional<Identity>& identity, v1::TaskId::Role role, uint32_t index);
absl::Status CheckSender(const std::optional<Identity>& identity, const v1::TaskId& task);

}  // namespace rubato

#endif  // RUBATO_COMMON_SECURITY_SENDER_H_
