#ifndef RUBATO_COMMON_SECURITY_PERMISSIONS_H_
#define RUBATO_COMMON_SECURITY_PERMISSIONS_H_

#include <cstdint>
#include <initializer_list>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/security/identity.h"

namespace rubato {

// Who may call what.
class Parties {
 public:
  constexpr Parties(std::initializer_list<Party> parties) {
    for (const Party party : parties) bits_ |= 1u << static_cast<unsigned>(party);
  }
  constexpr bool Has(Party party) const { return (bits_ >> static_cast<unsigned>(party) & 1u) != 0; }

 private:
  uint32_t bits_ = 0;
};

struct Permission {
  // "/<package>.<service>/<method>", as HTTP/2's path has it.
  absl::string_view method;
  Parties parties;
  // Also those of whom nothing is known, as far as they can reach the port.
  bool is_public = false;
};

// One row for each method of each service that a task's port can have.
absl::Span<const Permission> Permissions();

// Null: nobody may call it.
const Permission* FindPermission(absl::string_view method);

// Whether somebody of the job may make the call; `who` is null if it is not known which task that is, but that it is
// one. PermissionDenied: no; the message has the method, and not who may.
absl::Status CheckPermission(absl::string_view method, const Identity* who);

}  // namespace rubato

#endif  // RUBATO_COMMON_SECURITY_PERMISSIONS_H_
