#include "coordinator/rules/policies/parts/changes_memory.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace rubato::coordinator {

std::string ChangesMemory::ToText() const { return absl::StrCat(changes, " ", given_up ? 1 : 0); }

absl::StatusOr<ChangesMemory> ChangesMemory::FromText(absl::string_view text, absl::string_view policy) {
  ChangesMemory memory;
  if (text.empty()) return memory;
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits(' ', 1));
  if (!absl::SimpleAtoi(parts.first, &memory.changes) || (parts.second != "0" && parts.second != "1")) {
    return absl::InvalidArgumentError(
        absl::StrCat("the memory of policy ", policy, ": ", text.size(), " bytes not its own"));
  }
  memory.given_up = parts.second == "1";
  return memory;
}

}  // namespace rubato::coordinator
