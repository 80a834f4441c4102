#include "common/storage/part_queue.h"

#include <algorithm>
#include <utility>

#include "common/storage/cut_record.h"

namespace rubato {

absl::Status PartQueue::BeginCut(const v1::Cut& cut) {
  if (cut.id() <= progress_.id()) return absl::OkStatus();
  progress_.Clear();
  progress_.set_id(cut.id());
  cut_ = {};
  cut_name_ = cut.name();
  const absl::Status named = CheckCutName(cut.name());
  cut_refused_ = !named.ok();
  if (cut_refused_) progress_.set_problem(std::string(named.message()));
  return named;
}

void PartQueue::AddCut(std::shared_ptr<const PendingPart> part) {
  if (cut_refused_ || part->cut.id() != progress_.id() || progress_.written()) return;
  if (part->write == nullptr) return progress_.set_written(true);
  cut_ = {std::move(part)};
}

void PartQueue::AddCheckpoint(std::shared_ptr<const PendingPart> part) {
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

}  // namespace rubato
