#ifndef RUBATO_TESTS_SIMULATION_CUT_ORACLE_H_
#define RUBATO_TESTS_SIMULATION_CUT_ORACLE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "proto/checkpoint.pb.h"
#include "proto/parameter_server.pb.h"
#include "tests/simulation/checkpoint_directory.h"
#include "tests/simulation/coverage.h"
#include "tests/simulation/history.h"
#include "tests/simulation/verdict.h"

namespace rubato::simulation {

// Judges cuts by I7: what each chunk and each worker captured, and that a cut which is recorded is whole. Not
// thread-safe.
class CutOracle {
 public:
  // Both must outlive it.
  CutOracle(Verdict* verdict, Coverage* coverage) : verdict_(verdict), coverage_(coverage) {}

  // The coordinator has decided on a plan, or amended it.
  void Decided(const v1::Plan& plan);
  // A chunk was captured; the history has judged what it has.
  void Captured(const KnownPlans& plans, const ChunkOracle& chunk, uint32_t index);
  // A worker has begun its first step under the cut's plan.
  void Entered(const v1::Cut& cut, const v1::TaskId& worker) { cuts_[cut.id()].entered.insert(worker.incarnation()); }
  // The coordinator says that the cut is complete, of a job with so many chunks. May be repeated.
  void Recorded(const v1::CutRecord& record, const CheckpointDirectory& directory, uint32_t chunks);
  void RolledBack();

  // The plan that the coordinator decided last, with its amendments.
  const v1::Plan& decided() const { return decided_; }
  // Null unless it is complete.
  const v1::CutRecord* FindComplete(uint64_t id) const;
  // Of a complete cut.
  ChunkStates StatesOf(uint64_t id) const;
  // Whether one was decided that is neither complete nor given up.
  bool open() const { return open_ != 0; }
  // Whether the worker is to enter its plan.
  bool IsInOpen(const v1::TaskId& worker) const;

 private:
  struct Chunk {
    ChunkState state;
    // The pushes that were done when it was captured, and the members for whom it had waited, by incarnation.
    std::set<PushId> done;
    std::set<uint64_t> members;
  };
  struct Facts {
    v1::Plan plan;  // As it was decided.
    std::map<uint32_t, Chunk> chunks;
    std::set<uint64_t> entered;
    v1::CutRecord record;
    bool complete = false;
  };

  std::string CheckRecord(const Facts& facts, const v1::CutRecord& record, uint32_t chunks) const;
  // Each push of a member that was not lost in it is in all chunks or in none.
  std::string CheckPushes(const Facts& facts) const;
  std::string CheckServerParts(const Facts& facts, const v1::CutRecord& record,
                               const CheckpointDirectory& directory) const;
  std::string CheckWorkerParts(const Facts& facts, const v1::CutRecord& record,
                               const CheckpointDirectory& directory) const;
  void NoteModeBefore(const KnownPlans& plans);

  Verdict* const verdict_;
  Coverage* const coverage_;
  std::map<uint64_t, Facts> cuts_;  // By id.
  v1::Plan decided_;                // Last, with its amendments.
  uint64_t open_ = 0;
  uint64_t highest_ = 0;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_CUT_ORACLE_H_
