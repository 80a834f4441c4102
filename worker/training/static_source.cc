#include "worker/training/static_source.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/config/local_sgd.h"
#include "common/static_partition.h"
#include "common/status.h"
#include "common/task.h"
#include "worker/training/read_batch.h"

namespace rubato::worker {

absl::Status StaticSource::EnterPlan(const Parameters::Step& step) {
  plan_ = step.plan;
  bool is_member = false;
  for (const v1::TaskId& member : plan_.members()) is_member = is_member || SameTask(member, options_.task);
  // Whoever was lost since the plan was decided leaves a gap, and does not move the others' parts: of an amendment one
  // worker may know and another not.
  std::vector<uint32_t> decided(plan_.decided_members().begin(), plan_.decided_members().end());
  if (decided.empty()) {
    for (const v1::TaskId& member : plan_.members()) decided.push_back(member.index());
  }
  members_ = static_cast<int64_t>(decided.size());
  rank_ = std::find(decided.begin(), decided.end(), options_.task.index()) - decided.begin();
  if (!is_member || rank_ == members_) {
    return absl::AbortedError(absl::StrCat(TaskName(options_.task), " is not a member of plan ", plan_.generation()));
  }
  const v1::TrainingConfig& training = options_.config->training();
  end_step_ = training.max_steps() > 0 ? training.max_steps() : std::numeric_limits<int64_t>::max();
  if (training.epochs() > 0) {
    end_step_ =
        std::min(end_step_, StaticEndStep(plan_.first_example(), plan_.first_step(), training.epochs(), members_,
                                          ExamplesPerStep(*options_.config), options_.train_examples));
  }
  options_.prefetcher->Clear();
  prepared_to_ = step.step;
  return absl::OkStatus();
}

absl::Status StaticSource::PrepareAhead() {
  const int64_t ahead = static_cast<int64_t>(options_.config->data().prefetch_batches());
  while (prepared_to_ < std::min(end_step_, current_step_ + 1 + ahead)) {
    StaticRange slice = StaticSlice(plan_.first_example(), plan_.first_step(), prepared_to_, rank_, members_,
                                    ExamplesPerStep(*options_.config), options_.train_examples);
    RUBATO_RETURN_IF_ERROR(options_.prefetcher->Push({slice.epoch, slice.begin, slice.end, 0, true}));
    ++prepared_to_;
  }
  return absl::OkStatus();
}

absl::StatusOr<BatchSource::Next> StaticSource::Get(const Parameters::Step& step) {
  bool same = !begun_ && step.step == current_step_ && step.generation == plan_.generation();
  if (!same) {
    begun_ = false;
    if (batch_.has_value()) options_.prefetcher->Recycle(*std::exchange(batch_, std::nullopt));
    if (step.generation != plan_.generation() || step.step != current_step_ + 1) {
      RUBATO_RETURN_IF_ERROR(EnterPlan(step));
    }
    current_step_ = step.step;
    if (step.step >= end_step_) return Next{.kind = Kind::kDone};
    RUBATO_RETURN_IF_ERROR(PrepareAhead());
    absl::StatusOr<Batch> batch = ReadBatch(options_.prefetcher, options_.watchdog);
    if (!batch.ok()) return Annotate(batch.status(), absl::StrCat("the examples of step ", step.step));
    batch_ = *std::move(batch);
  }
  if (step.step >= end_step_) return Next{.kind = Kind::kDone};
  // The epoch of the whole group's first example: the same for every member, so that the learning rate is.
  const int64_t position = StaticPosition(plan_.first_example(), plan_.first_step(), step.step, members_,
                                          ExamplesPerStep(*options_.config), options_.train_examples);
  const double epoch = static_cast<double>(position) / static_cast<double>(options_.train_examples);
  if (batch_->examples == 0) return Next{Kind::kEmpty, nullptr, epoch};
  // All members move on together.
  const double per_example = static_cast<double>(members_) / static_cast<double>(options_.train_examples);
  return Next{Kind::kBatch, &*batch_, epoch, per_example};
}

}  // namespace rubato::worker
