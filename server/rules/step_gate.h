#ifndef RUBATO_SERVER_RULES_STEP_GATE_H_
#define RUBATO_SERVER_RULES_STEP_GATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proto/parameter_server.pb.h"
#include "server/rules/member_list.h"
#include "server/rules/worker_rows.h"
#include "server/rules/worker_state.h"

namespace rubato::server {

// The clocks of a plan's members on one chunk, and who of them is behind. Takes as long however many members there are,
// but for what goes through all of them: a plan, Behind, and the lowest clock's move to another step. Pure; not
// thread-safe.
class StepGate {
 public:
  using Member = WorkerOnChunk::Progress;

  // Keeps the members' progress and clocks there.
  explicit StepGate(ChunkColumn<WorkerOnChunk> workers = {}, ChunkColumn<int64_t> clocks = {})
      : workers_(std::move(workers)), clocks_(std::move(clocks)) {}

  // Takes the members of a plan that begins with `first_step`. A member that was there before keeps its clock when
  // `keep_clocks` (leaving SYNC, where everybody finishes the same last step). Otherwise its clock becomes first_step,
  // or first_step - 1 and draining when it is working on a step. New members start at first_step.
  void EnterPlan(MemberList::Ptr members, int64_t first_step, bool keep_clocks);

  // Keeps only these members, all of whom are there, with their clocks.
  void Amend(MemberList::Ptr members);

  // The member with this index and incarnation; null if there is none.
  Member* Find(const v1::TaskId& task);
  const Member* Find(const v1::TaskId& task) const;

  const MemberList& list() const { return *list_; }
  // By slot.
  const Member& member(size_t slot) const { return workers_.Find((*list_)[slot].index)->progress; }
  // Steps that the member in this slot, or with this task's index, has done here. It is there.
  int64_t clock(size_t slot) const { return *clocks_.Find((*list_)[slot].index); }
  int64_t clock(const v1::TaskId& task) const { return *clocks_.Find(task.index()); }
  void SetClock(const v1::TaskId& task, int64_t clock);

  // Whether no member's clock is under `step`.
  bool IsReached(int64_t step) const;
  // Members whose clock is under `step`, in order of index, `most` of them: those for whom a start with this bound
  // waits.
  std::vector<v1::TaskId> Behind(int64_t step, size_t most) const;

  // Of all members; -1 when there is none.
  int64_t LowestClock() const { return list_->size() == 0 ? -1 : lowest_; }

  // For tests that visit all states: appends all that what comes later depends on.
  void AppendState(std::string* state) const;

 private:
  void FindLowest();

  MemberList::Ptr list_ = std::make_shared<const MemberList>();
  ChunkColumn<WorkerOnChunk> workers_;
  ChunkColumn<int64_t> clocks_;
  // Of the members' clocks, and how many have it.
  int64_t lowest_ = -1;
  size_t at_lowest_ = 0;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_RULES_STEP_GATE_H_
