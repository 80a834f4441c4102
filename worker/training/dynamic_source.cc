#include "worker/training/dynamic_source.h"

#include <algorithm>
#include <utility>

#include "common/config/batch_sizes.h"
#include "common/config/local_sgd.h"
#include "common/proto_enum.h"
#include "common/status.h"
#include "worker/training/read_batch.h"

namespace rubato::worker {
namespace {

// An unanswered request is sent again after this long.
constexpr absl::Duration kResend = absl::Seconds(1);
// After NONE_NOW, the next request waits this long.
constexpr absl::Duration kAskAgain = absl::Milliseconds(20);
// How long Get waits for a shard, and for the coordinator to answer at all, before it lets the step be empty.
constexpr absl::Duration kIdle = absl::Milliseconds(100);
constexpr absl::Duration kPoll = absl::Milliseconds(10);

}  // namespace

BatchSource::Next NextOfShard(const Batch& batch, int64_t train_examples) {
  const double per_example = 1 / static_cast<double>(train_examples);
  const double epoch =
      static_cast<double>(batch.epoch) + static_cast<double>(batch.begin) / static_cast<double>(train_examples);
  return {BatchSource::Kind::kBatch, &batch, epoch, per_example};
}

void DynamicSource::Request(absl::Time now) {
  if (done_) return;
  if (open_) {
    if (now - sent_at_ < kResend) return;
  } else {
    const int64_t low =
        ExamplesPerStep(*options_.config) * static_cast<int64_t>(options_.config->data().prefetch_batches());
    const bool wanted = options_.prefetcher->examples_queued() <= low;
    if (finished_.empty() && (!wanted || now - none_at_ < kAskAgain)) return;
    return SendRequest(now);
  }
  sent_at_ = now;
  options_.send(request_);
}

void DynamicSource::SendRequest(absl::Time now) {
  request_.set_request_id(request_.request_id() + 1);
  request_.clear_finished_shards();
  for (uint64_t shard : finished_) request_.add_finished_shards(shard);
  open_ = true;
  asked_at_ = sent_at_ = now;
  options_.send(request_);
}

void DynamicSource::OnGrant(const v1::ShardGrant& grant) {
  MutexLock lock(mu_);
  if (!open_ || grant.request_id() != request_.request_id()) return;
  open_ = false;
  const auto& sent = request_.finished_shards();
  const auto confirmed = [&sent](uint64_t shard) { return std::find(sent.begin(), sent.end(), shard) != sent.end(); };
  finished_.erase(std::remove_if(finished_.begin(), finished_.end(), confirmed), finished_.end());
  held_.erase(std::remove_if(held_.begin(), held_.end(), [&](const Held& held) { return confirmed(held.shard); }),
              held_.end());
  switch (grant.result()) {
    case v1::ShardGrant::GRANTED: {
      absl::Status status = options_.prefetcher->Push({grant.epoch(), grant.begin(), grant.end(), grant.shard(), true});
      if (!status.ok()) failed_ = Annotate(status, "shard from the coordinator");
      held_.push_back({grant.shard(), grant.begin()});
      break;
    }
    case v1::ShardGrant::DONE:
      done_ = true;
      break;
    case v1::ShardGrant::NONE_NOW:
    // What a newer coordinator says: as if it had no shard now.
    case v1::ShardGrant::RESULT_UNSPECIFIED:
      RUBATO_NO_VALUE_OF(v1::ShardGrant_Result_ShardGrant_Result) : none_at_ = options_.clock->Now();
      break;
  }
  granted_.NotifyAll();
}

absl::StatusOr<bool> DynamicSource::WaitForBatch(bool may_idle) {
  const absl::Time begin = options_.clock->Now();
  for (;;) {
    {
      MutexLock lock(mu_);
      if (done_) return false;  // Also when examples are left: the job has had its last step.
    }
    if (options_.prefetcher->examples_queued() > 0) {
      RUBATO_ASSIGN_OR_RETURN(batch_, ReadBatch(options_.prefetcher, options_.watchdog));
      MutexLock lock(mu_);
      Request(options_.clock->Now());  // One ahead.
      return true;
    }
    MutexLock lock(mu_);
    RUBATO_RETURN_IF_ERROR(failed_);
    const absl::Time now = options_.clock->Now();
    Request(now);
    // Others wait for this worker's step while it has nothing to do: what the coordinator has said, or that it is
    // silent, is good for more than one step.
    const bool told_none = now - none_at_ < kAskAgain;
    const bool silent = open_ && now - asked_at_ >= kIdle;
    if (((told_none || silent) && !may_idle) || now - begin >= kIdle) return false;
    granted_.WaitFor(mu_, kPoll);
  }
}

void DynamicSource::EnterPlan(const v1::Plan& plan) {
  generation_ = plan.generation();
  // The few that are ready have the size of the plan before; servers weight what is pushed by its examples.
  options_.prefetcher->SetBatchSize(BatchSize(*options_.config, plan, options_.worker) *
                                    BatchesPerStep(*options_.config, plan));
}

absl::StatusOr<BatchSource::Next> DynamicSource::Get(const Parameters::Step& step) {
  if (begun_) {
    begun_ = false;
    if (batch_.has_value()) options_.prefetcher->Recycle(*std::exchange(batch_, std::nullopt));
  }
  if (step.plan.generation() != generation_) EnterPlan(step.plan);
  const int64_t max_steps = options_.config->training().max_steps();
  if (max_steps > 0 && step.step >= max_steps) return Next{.kind = Kind::kDone};
  if (!batch_.has_value()) {
    // A shard is reported when the step after its last one begins: that must not be put off.
    const bool may_idle = step.plan.mode() == v1::ASYNC && !unreported_shard_.has_value();
    RUBATO_ASSIGN_OR_RETURN(bool there, WaitForBatch(may_idle));
    if (!there) {
      MutexLock lock(mu_);
      return Next{.kind = done_ ? Kind::kDone : Kind::kEmpty};
    }
  }
  return NextOfShard(*batch_, options_.train_examples);
}

std::vector<v1::ShardPosition> DynamicSource::Positions() {
  std::vector<v1::ShardPosition> positions;
  MutexLock lock(mu_);
  for (const Held& held : held_) {
    v1::ShardPosition& position = positions.emplace_back();
    position.set_shard(held.shard);
    position.set_next(held.next);
  }
  return positions;
}

void DynamicSource::Begun() {
  begun_ = true;
  MutexLock lock(mu_);
  for (Held& held : held_) {
    if (batch_.has_value() && held.shard == batch_->shard) held.next = batch_->end;
  }
  if (unreported_shard_.has_value()) finished_.push_back(*std::exchange(unreported_shard_, std::nullopt));
  if (batch_.has_value() && batch_->last_of_shard) unreported_shard_ = batch_->shard;
  if (!finished_.empty()) Request(options_.clock->Now());
}

void DynamicSource::Stopped() {
  MutexLock lock(mu_);
  if (done_ || !unreported_shard_.has_value()) return;
  finished_.push_back(*std::exchange(unreported_shard_, std::nullopt));
  // Not after an answer that may still be to come: nobody waits for it any more.
  SendRequest(options_.clock->Now());
}

}  // namespace rubato::worker
