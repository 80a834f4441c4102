#include "tests/simulation/checkpoint_part.h"

#include <utility>

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
  waiting_ = std::move(part);
  if (!std::exchange(busy_, true)) AfterAWhile([this] { WriteNext(); });
}

void CheckpointPart::AfterAWhile(std::function<void()> what) {
  world_->queue.After(world_->scenario.writing * world_->random.Uniform(), std::move(what));
}

void CheckpointPart::WriteNext() {
  busy_ = !closed_ && waiting_.has_value() && waiting_->cut.id() == cut_.id();
  if (!busy_) return;
  // A part of the same name goes when the writing begins.
  world_->checkpoints.BeginWrite(task_, waiting_->cut);
  AfterAWhile([this, part = *std::exchange(waiting_, std::nullopt)] { Finish(part); });
}

void CheckpointPart::Finish(const CheckpointDirectory::Part& part) {
  if (closed_) return;
  if (frozen_()) return world_->queue.After(world_->scenario.writing, [this, part] { Finish(part); });
  world_->trace.Add(TaskName(task_), " #", task_.incarnation(), ": its part of cut ", part.cut.id(), ", ",
                    part.cut.name(), ", is written");
  world_->checkpoints.Write(task_, part);
  AfterAWhile([this] { WriteNext(); });
  if (part.cut.id() != cut_.id()) return;
  progress_.set_written(true);
  progress_.set_bytes(kBytes);
}

}  // namespace rubato::simulation
