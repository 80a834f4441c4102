#include "client/sidecar/lease_keeper.h"

#include <algorithm>
#include <utility>

#include "common/proto_enum.h"

namespace rubato::client {
namespace {

// An unanswered request is sent again after this long.
constexpr absl::Duration kResend = absl::Seconds(1);
// After NONE_NOW, the next request waits this long.
constexpr absl::Duration kAskAgain = absl::Milliseconds(20);

}  // namespace

v1::ShardRequest LeaseKeeper::NewRequest(absl::Time now) {
  request_.set_request_id(request_.request_id() + 1);
  request_.clear_finished_shards();
  for (uint64_t shard : finished_) request_.add_finished_shards(shard);
  open_ = true;
  sent_at_ = now;
  return request_;
}

std::optional<v1::ShardRequest> LeaseKeeper::Due(absl::Time now) {
  if (done_) return std::nullopt;
  if (open_) {
    if (now - sent_at_ < kResend) return std::nullopt;
    sent_at_ = now;
    return request_;
  }
  const bool needed = wanted_ && granted_.empty() && now - none_at_ >= kAskAgain;
  if (finished_.empty() && !needed) return std::nullopt;
  return NewRequest(now);
}

void LeaseKeeper::OnGrant(const v1::ShardGrant& grant, absl::Time now) {
  if (!open_ || grant.request_id() != request_.request_id()) return;
  open_ = false;
  const auto& sent = request_.finished_shards();
  const auto confirmed = [&sent](uint64_t shard) { return std::find(sent.begin(), sent.end(), shard) != sent.end(); };
  std::erase_if(finished_, confirmed);
  std::erase_if(held_, [&](const Held& held) { return confirmed(held.shard); });
  switch (grant.result()) {
    case v1::ShardGrant::GRANTED:
      granted_.push_back({.shard = grant.shard(), .epoch = grant.epoch(), .begin = grant.begin(), .end = grant.end()});
      held_.push_back({.shard = grant.shard(), .next = grant.begin(), .end = grant.end()});
      break;
    case v1::ShardGrant::DONE:
      done_ = true;
      break;
    case v1::ShardGrant::NONE_NOW:
    // What a newer coordinator says: as if it had no shard now.
    case v1::ShardGrant::RESULT_UNSPECIFIED:
      RUBATO_NO_VALUE_OF(v1::ShardGrant_Result_ShardGrant_Result) : none_at_ = now;
      break;
  }
}

std::optional<LeaseBody> LeaseKeeper::Take() {
  if (!wanted_ || granted_.empty()) return std::nullopt;
  wanted_ = false;
  const LeaseBody lease = granted_.front();
  granted_.pop_front();
  return lease;
}

bool LeaseKeeper::Acknowledged() {
  if (!slice_.has_value()) return !finished_.empty();
  const SliceBody slice = *std::exchange(slice_, std::nullopt);
  for (Held& held : held_) {
    if (held.shard != slice.shard) continue;
    held.next = slice.end;
    if (held.next == held.end) finished_.push_back(held.shard);
  }
  return !finished_.empty();
}

std::optional<v1::ShardRequest> LeaseKeeper::Stopped(absl::Time now) {
  Acknowledged();
  if (done_ || finished_.empty()) return std::nullopt;
  // Not after an answer that may still be to come: nobody waits for it any more.
  return NewRequest(now);
}

std::vector<v1::ShardPosition> LeaseKeeper::Positions() const {
  std::vector<v1::ShardPosition> positions;
  for (const Held& held : held_) {
    v1::ShardPosition& position = positions.emplace_back();
    position.set_shard(held.shard);
    position.set_next(held.next);
  }
  return positions;
}

}  // namespace rubato::client
