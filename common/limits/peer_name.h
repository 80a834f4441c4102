#ifndef RUBATO_COMMON_LIMITS_PEER_NAME_H_
#define RUBATO_COMMON_LIMITS_PEER_NAME_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "common/security/identity.h"

namespace rubato {

// Whom something is counted against: "worker 1", or the host that gRPC's "ipv4:127.0.0.1:50000" is of, "127.0.0.1",
// where nobody has proved who calls.
std::string PeerName(const std::optional<Identity>& identity, absl::string_view peer);

}  // namespace rubato

#endif  // RUBATO_COMMON_LIMITS_PEER_NAME_H_
