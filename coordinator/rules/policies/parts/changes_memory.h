#ifndef RUBATO_COORDINATOR_RULES_POLICIES_PARTS_CHANGES_MEMORY_H_
#define RUBATO_COORDINATOR_RULES_POLICIES_PARTS_CHANGES_MEMORY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rubato::coordinator {

// What a policy remembers that changes the rules now and then, until it gives up. As text: "<changes> <0 or 1>".
struct ChangesMemory {
  uint32_t changes = 0;
  bool given_up = false;

  std::string ToText() const;
  // Of empty text: of a job that begins. InvalidArgument names the policy.
  static absl::StatusOr<ChangesMemory> FromText(absl::string_view text, absl::string_view policy);
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_POLICIES_PARTS_CHANGES_MEMORY_H_
