#include "worker/device/step_deadline.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace rubato::worker {

void StepDeadline::Begin(std::string work) {
  work_ = std::move(work);
  used_ = absl::ZeroDuration();
}

void StepDeadline::Enter(absl::string_view what, absl::string_view subject, absl::Time now) {
  if (calls_.empty()) entered_ = now;
  calls_.emplace_back(what, subject);
}

void StepDeadline::Leave(absl::Time now) {
  calls_.pop_back();
  if (calls_.empty()) used_ += now - entered_;
}

std::optional<std::string> StepDeadline::Expired(absl::Time now) const {
  if (calls_.empty()) return std::nullopt;
  const absl::Duration used = used_ + (now - entered_);
  if (used <= limit_) return std::nullopt;
  const auto& [what, subject] = calls_.back();
  return absl::StrCat(work_, " has been with the device for ", absl::FormatDuration(used),
                      ", which is longer than training.step_timeout_seconds, ", absl::FormatDuration(limit_),
                      "; it waits in \"", what, subject.empty() ? "" : " ", subject, "\"");
}

}  // namespace rubato::worker
