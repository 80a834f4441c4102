#include "tests/simulation/sim_journal.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "coordinator/record/journal_format.h"

namespace rubato::simulation {
namespace {

// What the disk writes at once. Small, because the records of a simulated job are few.
constexpr size_t kSector = 64;

}  // namespace

void SimJournal::Append(const v1::JournalRecord& record, bool durable) {
  if (bytes_.empty()) bytes_ = std::string(coordinator::kJournalFirstLine);
  if (!coordinator::AppendJournalRecord(record, &bytes_).ok()) std::abort();  // Larger than records may be.
  if (durable) durable_ = bytes_.size();
}

void SimJournal::Replace(const std::vector<v1::JournalRecord>& records) {
  bytes_.clear();
  for (const v1::JournalRecord& record : records) Append(record, /*durable=*/true);
}

absl::StatusOr<std::vector<v1::JournalRecord>> SimJournal::Read(absl::string_view boot_id) const {
  absl::StatusOr<coordinator::JournalContents> contents = coordinator::DecodeJournal(bytes_, boot_id);
  if (!contents.ok()) return contents.status();
  return std::move(contents->records);
}

void SimJournal::Open(absl::string_view boot_id) {
  bytes_.resize(coordinator::DecodeJournal(bytes_, boot_id)->bytes);
  durable_ = bytes_.size();
}

bool SimJournal::LosePower(bool in_any_order, Random* random) {
  const size_t kept = random->Below(3) == 0 ? 0 : random->Below(bytes_.size() - durable_ + 1);
  bytes_.resize(durable_ + kept);
  if (!in_any_order || random->Below(2) == 0) return kept > 0;
  for (size_t at = durable_; at < bytes_.size();) {
    const size_t end = std::min(bytes_.size(), at - at % kSector + kSector);
    if (random->Below(3) == 0)
      std::fill(bytes_.begin() + static_cast<std::ptrdiff_t>(at), bytes_.begin() + static_cast<std::ptrdiff_t>(end),
                '\0');
    at = end;
  }
  return kept > 0;
}

}  // namespace rubato::simulation
