#ifndef RUBATO_COORDINATOR_RULES_COMPACT_JOURNAL_H_
#define RUBATO_COORDINATOR_RULES_COMPACT_JOURNAL_H_

#include <vector>

#include "proto/journal.pb.h"

namespace rubato::coordinator {

// The journal without what its last rollback has undone, and nobody needs to know any more: a coordinator that recovers
// from it knows the same. Pure.
std::vector<v1::JournalRecord> CompactJournal(const std::vector<v1::JournalRecord>& records);

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_COMPACT_JOURNAL_H_
