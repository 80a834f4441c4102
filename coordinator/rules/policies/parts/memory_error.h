#ifndef RUBATO_COORDINATOR_RULES_POLICIES_PARTS_MEMORY_ERROR_H_
#define RUBATO_COORDINATOR_RULES_POLICIES_PARTS_MEMORY_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace rubato::coordinator {

// Of a policy whose memory, as the journal has it, is none that it writes. `allowed`: what it writes.
inline absl::Status MemoryError(absl::string_view policy, absl::string_view memory, absl::string_view allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat("the memory of policy ", policy, ": value \"", absl::CHexEscape(memory), "\"; allowed: ", allowed));
}

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_POLICIES_PARTS_MEMORY_ERROR_H_
