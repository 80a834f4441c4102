#ifndef RUBATO_COORDINATOR_RULES_STATUS_REPORT_H_
#define RUBATO_COORDINATOR_RULES_STATUS_REPORT_H_

#include <string>

#include "absl/time/time.h"
#include "coordinator/rules/checkpoint_round.h"
#include "coordinator/rules/cut_keeper.h"
#include "coordinator/rules/job_state.h"
#include "coordinator/rules/starting_phase.h"

namespace rubato::coordinator {

// What an operator is told of the job. Pure functions.

// What the job waits for now, as text; empty when it does not wait.
std::string WaitingText(const JobState& job, const StartingPhase& starting, const CheckpointRound& checkpoints,
                        const CutKeeper& cuts);

v1::JobStatus ReportStatus(const JobState& job, const std::string& waiting_for, absl::Time now);

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_STATUS_REPORT_H_
