#include "coordinator/rules/shard_dispatcher.h"

#include <algorithm>

#include "common/task.h"

namespace rubato::coordinator {

ShardDispatcher::ShardDispatcher(const Options& options)
    : options_(options),
      shards_per_epoch_((options.train_examples + options.shard_examples - 1) / options.shard_examples),
      last_shard_(static_cast<uint64_t>(options.epochs) * static_cast<uint64_t>(shards_per_epoch_)) {}

ShardDispatcher::Answer ShardDispatcher::Request(const v1::TaskId& worker, const v1::ShardRequest& request) {
  Answer answer;
  for (uint64_t shard : request.finished_shards()) {
    auto lease = leases_.find(shard);
    if (lease == leases_.end() || !SameTask(lease->second, worker)) continue;
    if (Finish(shard)) answer.finished.push_back(shard);
  }
  LastAnswer& last = answers_[worker.index()];
  if (last.incarnation != worker.incarnation()) last = {worker.incarnation(), v1::ShardGrant()};
  if (request.request_id() < last.grant.request_id()) return answer;
  if (request.request_id() > last.grant.request_id()) {
    uint64_t shard = Done() ? 0 : TakeShard();
    last.grant = Describe(shard);
    last.grant.set_request_id(request.request_id());
    if (shard != 0) {
      leases_[shard] = worker;
      answer.leased = true;
    }
  }
  answer.grant = last.grant;
  return answer;
}

void ShardDispatcher::Release(const v1::TaskId& worker) {
  for (auto lease = leases_.begin(); lease != leases_.end();) {
    if (SameTask(lease->second, worker)) {
      returned_.insert(lease->first);
      lease = leases_.erase(lease);
    } else {
      ++lease;
    }
  }
}

void ShardDispatcher::RestoreLease(const v1::TaskId& worker, const v1::ShardGrant& grant) {
  next_shard_ = std::max(next_shard_, grant.shard() + 1);
  returned_.erase(grant.shard());
  leases_[grant.shard()] = worker;
  answers_[worker.index()] = {worker.incarnation(), grant};
}

void ShardDispatcher::RestoreFinished(uint64_t shard) { Finish(shard); }

bool ShardDispatcher::Done() const { return last_shard_ != 0 && shards_done_ >= last_shard_; }

uint64_t ShardDispatcher::TakeShard() {
  if (!returned_.empty()) {
    uint64_t shard = *returned_.begin();
    returned_.erase(returned_.begin());
    return shard;
  }
  if (last_shard_ != 0 && next_shard_ > last_shard_) return 0;
  return next_shard_++;
}

v1::ShardGrant ShardDispatcher::Describe(uint64_t shard) const {
  v1::ShardGrant grant;
  if (shard == 0) {
    grant.set_result(Done() ? v1::ShardGrant::DONE : v1::ShardGrant::NONE_NOW);
    return grant;
  }
  const int64_t number = static_cast<int64_t>(shard) - 1;
  const int64_t begin = number % shards_per_epoch_ * options_.shard_examples;
  grant.set_result(v1::ShardGrant::GRANTED);
  grant.set_shard(shard);
  grant.set_epoch(number / shards_per_epoch_);
  grant.set_begin(begin);
  grant.set_end(begin + std::min(options_.shard_examples, options_.train_examples - begin));
  return grant;
}

bool ShardDispatcher::Finish(uint64_t shard) {
  if (leases_.erase(shard) == 0) return false;
  v1::ShardGrant grant = Describe(shard);
  examples_done_ += grant.end() - grant.begin();
  ++shards_done_;
  return true;
}

}  // namespace rubato::coordinator
