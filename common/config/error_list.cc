#include "common/config/error_list.h"

#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace rubato {

std::string NumberText(double value) {
  char text[32];
  const std::to_chars_result result = std::to_chars(text, text + sizeof(text), value);
  return std::string(text, result.ptr);
}

void ErrorList::Add(absl::string_view path, absl::string_view value, absl::string_view allowed) {
  lines_.push_back(absl::StrCat(path, ": value ", value, "; allowed: ", allowed));
}

void ErrorList::AddLines(absl::string_view lines) { lines_.emplace_back(lines); }

void ErrorList::CheckInteger(absl::string_view path, int64_t value, int64_t lowest, int64_t highest) {
  if (value < lowest || value > highest) Add(path, absl::StrCat(value), absl::StrCat(lowest, " to ", highest));
}

void ErrorList::CheckNumber(absl::string_view path, double value, bool good, absl::string_view allowed) {
  if (!good || !std::isfinite(value)) Add(path, NumberText(value), allowed);
}

void ErrorList::CheckNotEmpty(absl::string_view path, absl::string_view value, absl::string_view allowed) {
  if (value.empty()) Add(path, "empty", allowed);
}

absl::Status ErrorList::ToStatus() const {
  if (lines_.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(lines_, "\n"));
}

}  // namespace rubato
