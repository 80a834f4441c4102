#ifndef RUBATO_COORDINATOR_RULES_CHECKPOINT_ROUND_H_
#define RUBATO_COORDINATOR_RULES_CHECKPOINT_ROUND_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "coordinator/rules/job_state.h"
#include "coordinator/rules/outbox.h"

namespace rubato::coordinator {

// The initial weights, the last ones, and those of a job that was asked to stop.
inline constexpr char kFirstCheckpoint[] = "step0";
inline constexpr char kLastCheckpoint[] = "final";
inline constexpr char kStopCheckpoint[] = "stopped";

// The checkpoint that the servers were told to write last, and who has done so. Pure.
class CheckpointRound {
 public:
  // Both outlive it.
  CheckpointRound(const JobState* job, Outbox* out) : job_(job), out_(out) {}

  // Tells all servers. A round before that is not complete is given up.
  void Begin(const std::string& name);
  // The server has written its part of this checkpoint. True when it was the last one; once.
  bool OnWritten(uint32_t server);
  // A server that has registered again is told again, if its part is missing.
  void Remind(const v1::TaskId& server);

  // Empty: there was none yet.
  const std::string& name() const { return name_; }
  // Servers that have not written it yet, by name.
  std::vector<std::string> Missing() const;

 private:
  const JobState* const job_;
  Outbox* const out_;
  std::string name_;
  std::set<uint32_t> written_;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_CHECKPOINT_ROUND_H_
