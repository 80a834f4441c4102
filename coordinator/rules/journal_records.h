#ifndef RUBATO_COORDINATOR_RULES_JOURNAL_RECORDS_H_
#define RUBATO_COORDINATOR_RULES_JOURNAL_RECORDS_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "coordinator/rules/job_state.h"
#include "proto/journal.pb.h"

namespace rubato::coordinator {

// The records of the journal that describe the job as it is. Pure functions; recovery.cc reads them.

v1::JournalRecord HeaderRecord(const JobState& job);
// The coordinator was started again.
v1::JournalRecord TermRecord(uint64_t term, const std::string& boot_id);
v1::JournalRecord StopRequestRecord(const std::string& reason);
// As the task is now: alive, or how it ended and with which counts.
v1::JournalRecord TaskRecord(const JobState& job, const v1::TaskId& task);
// `since`: when the phase began.
v1::JournalRecord PhaseRecord(const JobState& job, absl::Time since);

v1::JournalRecord AnnounceRecord(uint64_t generation, const PlanChange& change, const std::string& policy_memory);
// Its change, which nobody waits for.
PlanChange ChangeOf(const v1::JournalAnnounce& announce);

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_JOURNAL_RECORDS_H_
