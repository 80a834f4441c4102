#ifndef RUBATO_TESTS_SIMULATION_ROLLBACK_WATCH_H_
#define RUBATO_TESTS_SIMULATION_ROLLBACK_WATCH_H_

#include "tests/simulation/coverage.h"

namespace rubato::simulation {

// Whether the job is going back to a checkpoint, and what goes wrong meanwhile. Not thread-safe.
class RollbackWatch {
 public:
  // `coverage` must outlive it.
  explicit RollbackWatch(Coverage* coverage) : coverage_(coverage) {}

  // The rollback is in the journal, of a job with so many servers.
  void Begin(int servers) {
    if (!going_on_) servers_ = servers;
    going_on_ = true;
  }
  void NoteFault() {
    if (!going_on_) return;
    ++faults_;
    if (faults_ == 1) coverage_->Note(Reached::kFaultInRollback);
    if (faults_ == 2) coverage_->Note(Reached::kTwoFaultsInRollback);
  }
  // A server has taken the first plan after it, as one of so many.
  void End(int servers) {
    if (!going_on_) return;
    if (servers < servers_) coverage_->Note(Reached::kRollbackToFewerServers);
    going_on_ = false;
    faults_ = 0;
  }
  bool going_on() const { return going_on_; }

 private:
  Coverage* const coverage_;
  bool going_on_ = false;
  int servers_ = 0;
  int faults_ = 0;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_ROLLBACK_WATCH_H_
