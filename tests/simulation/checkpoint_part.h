#ifndef RUBATO_TESTS_SIMULATION_CHECKPOINT_PART_H_
#define RUBATO_TESTS_SIMULATION_CHECKPOINT_PART_H_

#include <functional>
#include <optional>
#include <utility>

#include "proto/coordinator.pb.h"
#include "tests/simulation/checkpoint_directory.h"
#include "tests/simulation/world.h"

namespace rubato::simulation {

// A task's part of the last cut that it was told of: when it is written, and what its heartbeats say of it. Belongs to
// a process and ends with it; what is on the disk stays. Not thread-safe.
class CheckpointPart {
 public:
  // `world` and `frozen`, which says whether the process stands still, must outlive it.
  CheckpointPart(World* world, const v1::TaskId& task, std::function<bool()> frozen)
      : world_(world), task_(task), frozen_(std::move(frozen)) {}

  // The task has heard of this cut. Older ones change nothing; those that are not written yet are given up.
  void Begin(const v1::Cut& cut);
  // The state of the last cut: it is on the disk a while later, when what is being written is. Of another cut: it is
  // dropped.
  void Write(CheckpointDirectory::Part part);
  // The process ends.
  void Close() { closed_ = true; }

  const v1::Cut& cut() const { return cut_; }
  v1::CutProgress& progress() { return progress_; }

 private:
  void AfterAWhile(std::function<void()> what);
  void WriteNext();
  void Finish(const CheckpointDirectory::Part& part);

  World* const world_;
  const v1::TaskId task_;
  const std::function<bool()> frozen_;
  v1::Cut cut_;
  v1::CutProgress progress_;
  // As the thread that writes: one part at a time.
  std::optional<CheckpointDirectory::Part> waiting_;
  bool busy_ = false;
  bool closed_ = false;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_CHECKPOINT_PART_H_
