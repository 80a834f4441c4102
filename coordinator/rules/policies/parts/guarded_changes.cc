#include "coordinator/rules/policies/parts/guarded_changes.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "coordinator/rules/policies/parts/memory_error.h"

namespace rubato::coordinator {

bool GuardedChanges::GivesUp(std::optional<double> loss) {
  band_.Add(loss);
  if (band_.left()) given_up_ = true;
  return given_up_;
}

bool GuardedChanges::Confirms(int direction, double gain) {
  if (!pace_.Confirms(direction, gain)) return false;
  band_.Freeze();
  return true;
}

std::string GuardedChanges::Memory() const { return absl::StrCat(pace_.changes(), " ", given_up_ ? 1 : 0); }

absl::Status GuardedChanges::Restore(absl::string_view memory) {
  if (memory.empty()) return absl::OkStatus();
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(memory, absl::MaxSplits(' ', 1));
  uint32_t changes = 0;
  if (!absl::SimpleAtoi(parts.first, &changes) || (parts.second != "0" && parts.second != "1")) {
    return MemoryError(policy_, memory, "the number of changes, a space, and 0 or 1");
  }
  pace_.Restore(changes);
  given_up_ = parts.second == "1";
  return absl::OkStatus();
}

}  // namespace rubato::coordinator
