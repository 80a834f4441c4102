#include "worker/device/step_deadline.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace rubato::worker {

void StepDeadline::Begin(std::string work) {
  work_ = std::move(work);
  used_ = absl::ZeroDuration();
  has_read_ = false;
}

void StepDeadline::Enter(On on, absl::string_view what, absl::string_view subject, absl::Time now) {
  if (calls_.empty()) entered_ = now;
  has_read_ |= on == On::kReader;
  calls_.push_back({on, what, subject});
}

void StepDeadline::Leave(absl::Time now) {
  calls_.pop_back();
  if (calls_.empty()) used_ += now - entered_;
}

std::optional<std::string> StepDeadline::Expired(absl::Time now) const {
  if (calls_.empty()) return std::nullopt;
  const absl::Duration used = used_ + (now - entered_);
  if (used <= limit_) return std::nullopt;
  const auto& [on, what, subject] = calls_.back();
  const absl::string_view where = on == On::kReader ? " has waited for the reader of its data for "
                                  : has_read_       ? " has been with the reader of its data and the device for "
                                                    : " has been with the device for ";
  return absl::StrCat(work_, where, absl::FormatDuration(used),
                      ", which is longer than training.step_timeout_seconds, ", absl::FormatDuration(limit_),
                      "; it waits in \"", what, subject.empty() ? "" : " ", subject, "\"");
}

}  // namespace rubato::worker
