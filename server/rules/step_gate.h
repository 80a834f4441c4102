#ifndef RUBATO_SERVER_RULES_STEP_GATE_H_
#define RUBATO_SERVER_RULES_STEP_GATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/parameter_server.pb.h"

namespace rubato::server {

// The clocks of a plan's members on one chunk, and who of them is behind. Pure; not thread-safe.
class StepGate {
 public:
  struct Member {
    v1::TaskId task;
    // Steps that are done here: applied, or skipped by a change of plan.
    int64_t clock = 0;
    // The highest step whose weights were handed out here; -1 for none.
    int64_t begun = -1;
    // Whether that step's push is still to come.
    bool working = false;
    // Working on a step of the plan before; its clock is first_step - 1 until that push comes or it begins first_step.
    bool draining = false;
  };

  // Takes the members of `plan`. A member that was there before keeps its clock when `keep_clocks` (leaving SYNC, where
  // everybody finishes the same last step). Otherwise its clock becomes first_step, or first_step - 1 and draining when
  // it is working on a step. New members start at first_step.
  void EnterPlan(const v1::Plan& plan, bool keep_clocks);

  // Keeps only the members of `plan`, with their clocks.
  void Amend(const v1::Plan& plan);

  // The member with this index and incarnation; null if there is none.
  Member* Find(const v1::TaskId& task);
  const Member* Find(const v1::TaskId& task) const;

  // Members whose clock is under `step`, in order of index: those for whom a start with this bound waits.
  std::vector<v1::TaskId> Behind(int64_t step) const;

  // Of all members; -1 when there is none.
  int64_t LowestClock() const;

  // For tests that visit all states: appends all that what comes later depends on.
  void AppendState(std::string* state) const;

 private:
  std::vector<Member> members_;  // In order of index.
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_RULES_STEP_GATE_H_
