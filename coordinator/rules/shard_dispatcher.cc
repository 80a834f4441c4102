#include "coordinator/rules/shard_dispatcher.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/mutants.h"
#include "common/task.h"

namespace rubato::coordinator {

ShardDispatcher::ShardDispatcher(const Options& options)
    : options_(options),
      shards_per_epoch_((options.train_examples + options.shard_examples - 1) / options.shard_examples),
      last_shard_(static_cast<uint64_t>(options.epochs) * static_cast<uint64_t>(shards_per_epoch_)) {}

ShardDispatcher::Answer ShardDispatcher::Request(const v1::TaskId& worker, const v1::ShardRequest& request) {
  Answer answer;
  for (uint64_t shard : request.finished_shards()) {
    if (!Holds(worker, shard)) continue;
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
      leases_[shard] = {worker, request.request_id()};
      answer.leased = true;
      const bool later = cut_spoken_.contains({worker.index(), worker.incarnation()});
      if (later && !RUBATO_MUTANT(kCutTakesLaterShards)) cut_later_.insert(shard);
    }
  }
  answer.grant = last.grant;
  return answer;
}

bool ShardDispatcher::Holds(const v1::TaskId& worker, uint64_t shard) const {
  auto lease = leases_.find(shard);
  return lease != leases_.end() && SameTask(lease->second.worker, worker);
}

void ShardDispatcher::Leave(const v1::TaskId& worker) {
  const bool holds = std::any_of(leases_.begin(), leases_.end(),
                                 [&](const auto& lease) { return SameTask(lease.second.worker, worker); });
  if (holds) gone_.push_back(worker);
}

absl::Status ShardDispatcher::Return(const v1::TaskId& worker, const std::optional<v1::ShardPosition>& trained) {
  gone_.erase(
      std::remove_if(gone_.begin(), gone_.end(), [&](const v1::TaskId& task) { return SameTask(task, worker); }),
      gone_.end());
  std::vector<std::pair<uint64_t, uint64_t>> held;  // In the order in which it works on them.
  for (const auto& [shard, lease] : leases_) {
    if (SameTask(lease.worker, worker)) held.emplace_back(lease.request_id, shard);
  }
  std::sort(held.begin(), held.end());
  absl::Status status;
  // Its shards before this one are finished. One that it does not hold was reported before the next was begun.
  bool before = trained.has_value() && Holds(worker, trained->shard()) && !RUBATO_MUTANT(kLostPlaceForgotten);
  for (const auto& [request, shard] : held) {
    // In a cut is what the worker said; what it was given later is in it as it was then.
    if (cut_later_.contains(shard)) cut_next_.try_emplace(shard, NextOf(shard));
    const bool reached = before && shard == trained->shard();
    if (before && !reached) {
      Finish(shard);
      continue;
    }
    before = false;
    int64_t next = NextOf(shard);
    if (reached && trained->next() >= next && trained->next() <= RangeOf(shard).end) {
      next = trained->next();
    } else if (reached) {
      status = absl::InvalidArgumentError(absl::StrCat("lost.trained: ", TaskName(worker), " is at example ",
                                                       trained->next(), " of shard ", shard, "; allowed: ", next,
                                                       " to ", RangeOf(shard).end));
    }
    GiveBack(shard, next);
  }
  return status;
}

void ShardDispatcher::GiveBack(uint64_t shard, int64_t next) {
  if (next == RangeOf(shard).end) {
    Finish(shard);
    return;
  }
  examples_done_ += next - NextOf(shard);
  if (next > RangeOf(shard).begin) next_[shard] = next;
  leases_.erase(shard);
  returned_.insert(shard);
}

void ShardDispatcher::RestoreLease(const v1::TaskId& worker, const v1::ShardGrant& grant) {
  next_shard_ = std::max(next_shard_, grant.shard() + 1);
  returned_.erase(grant.shard());
  leases_[grant.shard()] = {worker, grant.request_id()};
  answers_[worker.index()] = {worker.incarnation(), grant};
}

void ShardDispatcher::RestoreFinished(uint64_t shard) { Finish(shard); }

bool ShardDispatcher::Done() const {
  const uint64_t done = shards_done_ + (RUBATO_MUTANT(kLastShardForgotten) ? 1 : 0);
  return last_shard_ != 0 && done >= last_shard_;
}

uint64_t ShardDispatcher::TakeShard() {
  if (!returned_.empty()) {
    uint64_t shard = *returned_.begin();
    if (!RUBATO_MUTANT(kReturnedShardStays)) returned_.erase(returned_.begin());
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
  grant.set_result(v1::ShardGrant::GRANTED);
  grant.set_shard(shard);
  grant.set_epoch((static_cast<int64_t>(shard) - 1) / shards_per_epoch_);
  grant.set_begin(NextOf(shard));
  grant.set_end(RangeOf(shard).end);
  return grant;
}

ShardDispatcher::Range ShardDispatcher::RangeOf(uint64_t shard) const {
  const int64_t begin = (static_cast<int64_t>(shard) - 1) % shards_per_epoch_ * options_.shard_examples;
  return {begin, begin + std::min(options_.shard_examples, options_.train_examples - begin)};
}

int64_t ShardDispatcher::NextOf(uint64_t shard) const {
  auto found = next_.find(shard);
  return found == next_.end() ? RangeOf(shard).begin : found->second;
}

void ShardDispatcher::MarkFinished(uint64_t shard) {
  finished_.insert(shard);
  while (finished_.erase(finished_below_) != 0) ++finished_below_;
}

bool ShardDispatcher::Finish(uint64_t shard) {
  if (leases_.erase(shard) == 0) return false;
  examples_done_ += RangeOf(shard).end - NextOf(shard);
  ++shards_done_;
  if (!RUBATO_MUTANT(kFinishedShardForgotten)) MarkFinished(shard);
  return true;
}

void ShardDispatcher::BeginCut() {
  cut_spoken_.clear();
  cut_next_.clear();
  cut_later_.clear();
}

absl::Status ShardDispatcher::NoteCut(const v1::TaskId& worker, const std::vector<v1::ShardPosition>& held) {
  const std::pair<uint32_t, uint64_t> key(worker.index(), worker.incarnation());
  if (cut_spoken_.contains(key)) return absl::OkStatus();
  for (const v1::ShardPosition& position : held) {
    // One that it reported as finished, and whose report has been taken; or whose lease went with the coordinator's
    // power, and which is given out again.
    if (!Holds(worker, position.shard())) continue;
    if (position.next() < NextOf(position.shard()) || position.next() > RangeOf(position.shard()).end) {
      return absl::InvalidArgumentError(absl::StrCat(
          "cut.shards: ", TaskName(worker), " is at example ", position.next(), " of shard ", position.shard(),
          "; allowed: ", NextOf(position.shard()), " to ", RangeOf(position.shard()).end));
    }
  }
  cut_spoken_.insert(key);
  for (const v1::ShardPosition& position : held) {
    const bool counts = Holds(worker, position.shard()) || IsFinished(position.shard());
    if (counts) cut_next_[position.shard()] = position.next();
  }
  // What it was given and did not hold yet.
  for (const auto& [shard, lease] : leases_) {
    if (SameTask(lease.worker, worker) && !cut_next_.contains(shard)) cut_later_.insert(shard);
  }
  return absl::OkStatus();
}

v1::ShardState ShardDispatcher::CutState() const {
  v1::ShardState state;
  for (uint64_t shard = 1; shard < next_shard_; ++shard) {
    const Range range = RangeOf(shard);
    int64_t next = NextOf(shard);
    if (auto said = cut_next_.find(shard); said != cut_next_.end()) {
      next = said->second;
    } else if (IsFinished(shard) && !cut_later_.contains(shard)) {
      next = range.end;
    }
    if (next == range.end) {
      const int last = state.finished_size() - 1;
      if (last >= 0 && state.finished(last).last() + 1 == shard) {
        state.mutable_finished(last)->set_last(shard);
      } else {
        v1::ShardRange* added = state.add_finished();
        added->set_first(shard);
        added->set_last(shard);
      }
    } else if (next > range.begin) {
      v1::ShardPosition* begun = state.add_begun();
      begun->set_shard(shard);
      begun->set_next(next);
    }
  }
  return state;
}

int64_t ShardDispatcher::ExamplesIn(const v1::ShardState& state) const {
  int64_t examples = 0;
  for (const v1::ShardRange& range : state.finished()) {
    for (uint64_t shard = range.first(); shard <= range.last(); ++shard) {
      examples += RangeOf(shard).end - RangeOf(shard).begin;
    }
  }
  for (const v1::ShardPosition& begun : state.begun()) examples += begun.next() - RangeOf(begun.shard()).begin;
  return examples;
}

absl::Status ShardDispatcher::RestoreCut(const v1::ShardState& state) {
  auto wrong = [this](uint64_t shard) {
    return absl::InvalidArgumentError(absl::StrCat("the checkpoint speaks of shard ", shard, " of ", last_shard_,
                                                   "; it is of other data, or of another data.shard_examples"));
  };
  uint64_t highest = 0;
  for (const v1::ShardRange& range : state.finished()) {
    if (range.first() == 0 || range.last() < range.first() || (last_shard_ != 0 && range.last() > last_shard_)) {
      return wrong(range.last());
    }
    for (uint64_t shard = range.first(); shard <= range.last(); ++shard) MarkFinished(shard);
    shards_done_ += range.last() - range.first() + 1;
    highest = std::max(highest, range.last());
  }
  for (const v1::ShardPosition& begun : state.begun()) {
    if (begun.shard() == 0 || (last_shard_ != 0 && begun.shard() > last_shard_)) return wrong(begun.shard());
    const Range range = RangeOf(begun.shard());
    if (begun.next() <= range.begin || begun.next() >= range.end || IsFinished(begun.shard())) {
      return wrong(begun.shard());
    }
    if (!RUBATO_MUTANT(kRestoredShardFromStart)) next_[begun.shard()] = begun.next();
    highest = std::max(highest, begun.shard());
  }
  // What was leased and not begun comes first.
  next_shard_ = highest + 1;
  for (uint64_t shard = 1; shard < next_shard_; ++shard) {
    if (!IsFinished(shard)) returned_.insert(shard);
  }
  examples_done_ = ExamplesIn(state);
  return absl::OkStatus();
}

}  // namespace rubato::coordinator
