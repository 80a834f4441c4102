#include "coordinator/rules/compact_journal.h"

#include <algorithm>
#include <cstdint>

namespace rubato::coordinator {

std::vector<v1::JournalRecord> CompactJournal(const std::vector<v1::JournalRecord>& records) {
  auto last = std::find_if(records.rbegin(), records.rend(),
                           [](const v1::JournalRecord& record) { return record.term().has_rollback(); });
  if (last == records.rend()) return records;
  const size_t from = static_cast<size_t>(records.rend() - last) - 1;
  const uint64_t cut = records[from].term().rollback().cut().cut().id();
  std::vector<v1::JournalRecord> kept;
  bool has_header = false;
  for (size_t i = 0; i < records.size(); ++i) {
    const v1::JournalRecord& record = records[i];
    // Tasks of the past are known by their incarnations. Evaluations of what was kept stay the last ones.
    // So does what workers have told each other.
    const bool still_true = (record.has_header() && !has_header) || record.has_task() || record.has_evaluation() ||
                            record.has_value() || record.has_barrier() ||
                            (record.has_cut() && record.cut().cut().id() <= cut);
    has_header = has_header || record.has_header();
    if (i >= from || still_true) kept.push_back(record);
  }
  return kept;
}

}  // namespace rubato::coordinator
