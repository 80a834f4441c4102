#include "server/part_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rubato::server {

absl::Status PartQueue::BeginCut(const v1::Cut& cut) {
  if (cut.id() <= progress_.id()) return absl::OkStatus();
  progress_.Clear();
  progress_.set_id(cut.id());
  cut_ = {};
  cut_name_ = cut.name();
  cut_refused_ = !IsCheckpointName(cut.name());
  if (!cut_refused_) return absl::OkStatus();
  progress_.set_problem(absl::StrCat("cut.name: '", cut.name(), "'; allowed: step<number>, final, stopped"));
  return absl::InvalidArgumentError(progress_.problem());
}

void PartQueue::AddCut(std::shared_ptr<const Part> part) {
  if (cut_refused_ || part->cut.id() != progress_.id() || progress_.written()) return;
  cut_ = {std::move(part)};
}

void PartQueue::AddCheckpoint(std::shared_ptr<const Part> part) {
  if (checkpoint_.part != nullptr && checkpoint_.part->name == part->name) return;
  checkpoint_ = {std::move(part)};
}

PartQueue::Work PartQueue::Next(absl::Time now) {
  if (keep_.has_value()) {
    // Before anything is written: a full disk may wait for it.
    std::vector<std::string> names = *std::exchange(keep_, std::nullopt);
    names.push_back(cut_name_);
    return {nullptr, std::move(names)};
  }
  const bool cut_first = cut_.part != nullptr && (checkpoint_.part == nullptr || cut_.due <= checkpoint_.due);
  const Slot& slot = cut_first ? cut_ : checkpoint_;
  if (slot.part == nullptr || slot.due > now) return {};
  writing_ = slot.part;
  return {slot.part, std::nullopt};
}

absl::Time PartQueue::due() const {
  if (keep_.has_value()) return absl::InfinitePast();
  absl::Time due = absl::InfiniteFuture();
  if (cut_.part != nullptr) due = cut_.due;
  if (checkpoint_.part != nullptr) due = std::min(due, checkpoint_.due);
  return due;
}

PartQueue::Result PartQueue::OnWritten(const absl::StatusOr<int64_t>& bytes, absl::Time now) {
  const bool of_last_cut = writing_->cut.id() != 0 && writing_->cut.id() == progress_.id();
  Slot* slot = IsWriting(cut_) ? &cut_ : IsWriting(checkpoint_) ? &checkpoint_ : nullptr;
  writing_ = nullptr;
  if (bytes.ok()) {
    const bool failed_before = slot != nullptr && slot->pause > absl::ZeroDuration();
    if (slot != nullptr) *slot = {};
    if (of_last_cut) {
      progress_.set_written(true);
      progress_.set_bytes(*bytes);
      progress_.clear_problem();
    }
    return failed_before ? Result::kWrittenAtLast : Result::kWritten;
  }
  if (slot == nullptr) return Result::kReplaced;
  if (of_last_cut) progress_.set_problem(std::string(bytes.status().message()));
  const bool failed_before = slot->pause > absl::ZeroDuration();
  slot->pause = failed_before ? std::min(2 * slot->pause, options_.retry_max) : options_.retry_min;
  slot->due = now + slot->pause;
  return failed_before ? Result::kFailedAgain : Result::kFailed;
}

}  // namespace rubato::server
