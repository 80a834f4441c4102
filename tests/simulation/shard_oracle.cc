#include "tests/simulation/shard_oracle.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/task.h"
#include "tests/simulation/chunk_oracle.h"

namespace rubato::simulation {
namespace {

std::string Text(const ShardOracle::Batch& batch) {
  return absl::StrCat("examples ", batch.begin, " to ", batch.end, " of shard ", batch.shard, " in step ", batch.step,
                      " of ", TaskName(batch.worker), " #", batch.worker.incarnation());
}

}  // namespace

ShardOracle::ShardOracle(const v1::ShardState& restored, int64_t shard_examples, Verdict* verdict)
    : restored_(restored), shard_examples_(shard_examples), verdict_(verdict) {}

int64_t ShardOracle::NextIn(const v1::ShardState& state, uint64_t shard) const {
  for (const v1::ShardRange& range : state.finished()) {
    if (range.first() <= shard && shard <= range.last()) return BeginOf(shard) + shard_examples_;
  }
  for (const v1::ShardPosition& position : state.begun()) {
    if (position.shard() == shard) return position.next();
  }
  return BeginOf(shard);
}

bool ShardOracle::Begun(uint64_t shard) const { return NextIn(restored_, shard) > BeginOf(shard); }

void ShardOracle::Trained(const Batch& batch, const v1::Plan& plan) {
  if (forgotten_.contains(batch.shard)) return;
  if (batch.begin < NextIn(restored_, batch.shard)) {
    verdict_->Note(absl::StrCat("I7: ", Text(batch), " are in the cut that the job goes on from"));
  }
  for (const Batch& other : batches_[batch.shard]) {
    if (other.end <= batch.begin || batch.end <= other.begin) continue;
    if (!HasMember(plan, other.worker) || !HasMember(plan, batch.worker)) continue;
    verdict_->Note(absl::StrCat("I7: ", Text(batch), " are trained twice, before as ", Text(other)));
  }
  batches_[batch.shard].push_back(batch);
}

std::string ShardOracle::CheckClaim(const v1::CutRecord& record, const v1::Plan& members, uint64_t shard,
                                    int64_t claimed) const {
  const int64_t first_step = record.plan().first_step();
  // What is claimed must have been trained: the batches, in order of their examples, leave no gap.
  std::vector<Batch> before;
  for (const Batch& batch : batches_.at(shard)) {
    if (batch.step < first_step) before.push_back(batch);
  }
  std::sort(before.begin(), before.end(), [](const Batch& a, const Batch& b) { return a.begin < b.begin; });
  int64_t trained = NextIn(restored_, shard);
  for (const Batch& batch : before) {
    if (batch.begin <= trained) trained = std::max(trained, batch.end);
    if (batch.end > claimed && HasMember(members, batch.worker)) {
      return absl::StrCat("does not know of ", Text(batch));
    }
  }
  if (trained >= claimed) return "";
  return absl::StrCat("says that shard ", shard, " is trained up to example ", claimed, "; it is up to ", trained);
}

void ShardOracle::Recorded(const v1::CutRecord& record, const v1::Plan& members) {
  std::set<uint64_t> shards;
  for (const auto& [shard, batches] : batches_) shards.insert(shard);
  for (const v1::ShardRange& range : record.shards().finished()) {
    for (uint64_t shard = range.first(); shard <= range.last(); ++shard) shards.insert(shard);
  }
  for (const v1::ShardPosition& position : record.shards().begun()) shards.insert(position.shard());
  for (uint64_t shard : shards) {
    if (forgotten_.contains(shard)) continue;
    batches_.try_emplace(shard);
    const std::string wrong = CheckClaim(record, members, shard, NextIn(record.shards(), shard));
    if (!wrong.empty()) verdict_->Note(absl::StrCat("I7: cut ", record.cut().id(), " ", wrong));
  }
}

}  // namespace rubato::simulation
