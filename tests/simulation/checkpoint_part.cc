#include "tests/simulation/checkpoint_part.h"

#include "absl/time/time.h"
#include "common/task.h"

namespace rubato::simulation {
namespace {

constexpr int64_t kBytes = 4096;

}  // namespace

void CheckpointPart::Begin(const v1::Cut& cut) {
  if (cut.id() <= cut_.id()) return;
  cut_ = cut;
  progress_.Clear();
  progress_.set_id(cut.id());
}

void CheckpointPart::Write(CheckpointDirectory::Part part) {
  if (part.cut.id() != cut_.id()) return;
  world_->queue.After(world_->scenario.writing * world_->random.Uniform(), [this, part = std::move(part)] {
    if (closed_ || part.cut.id() != cut_.id()) return;
    // A part of the same name goes when the writing begins.
    world_->checkpoints.BeginWrite(task_, part.cut);
    world_->queue.After(world_->scenario.writing * world_->random.Uniform(), [this, part] { Finish(part); });
  });
}

void CheckpointPart::Finish(const CheckpointDirectory::Part& part) {
  if (closed_) return;
  if (frozen_()) return world_->queue.After(world_->scenario.writing, [this, part] { Finish(part); });
  world_->trace.Add(TaskName(task_), " #", task_.incarnation(), ": its part of cut ", part.cut.id(), ", ",
                    part.cut.name(), ", is written");
  world_->checkpoints.Write(task_, part);
  if (part.cut.id() != cut_.id()) return;
  progress_.set_written(true);
  progress_.set_bytes(kBytes);
}

}  // namespace rubato::simulation
