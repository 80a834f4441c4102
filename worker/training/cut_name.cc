#include "worker/training/cut_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace rubato::worker {

bool IsStepCut(absl::string_view name) {
  return absl::ConsumePrefix(&name, "step") && !name.empty() &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) { return absl::ascii_isdigit(c); });
}

absl::Status CheckCutName(absl::string_view name) {
  if (IsStepCut(name) || name == "stopped") return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a checkpoint has the name \"", name, "\"; allowed: \"step<number>\" and \"stopped\""));
}

}  // namespace rubato::worker
