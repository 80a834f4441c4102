#include "tests/simulation/shard_oracle.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace rubato::simulation {

ShardOracle::ShardOracle(const v1::ShardState& restored, const DataSize& data, Verdict* verdict)
    : restored_(restored), data_(data), verdict_(verdict) {}

int64_t ShardOracle::NextIn(const v1::ShardState& state, uint64_t shard) const {
  for (const v1::ShardRange& range : state.finished()) {
    if (range.first() <= shard && shard <= range.last()) return EndOf(shard);
  }
  for (const v1::ShardPosition& position : state.begun()) {
    if (position.shard() == shard) return position.next();
  }
  return BeginOf(shard);
}

std::string ShardOracle::Text(uint64_t shard, const Batch& batch) {
  return absl::StrCat("examples ", batch.begin, " to ", batch.end, " of shard ", shard, " in step ", batch.step,
                      " of #", batch.incarnation);
}

void ShardOracle::Trained(const v1::UpdateRecord& push) {
  const uint64_t shard = push.slice().shard();
  if (shard == 0 || forgotten_.contains(shard)) return;
  const Batch batch{push.incarnation(), push.step(), push.slice().begin(), push.slice().end()};
  std::vector<Batch>& batches = batches_[shard];
  for (const Batch& other : batches) {
    // The same push, on another chunk.
    if (other.incarnation == batch.incarnation && other.step == batch.step) return;
    if (other.end <= batch.begin || batch.end <= other.begin) continue;
    verdict_->Note(absl::StrCat("I8: ", Text(shard, batch), " are trained twice, before in step ", other.step, " of #",
                                other.incarnation));
  }
  if (batch.begin < NextIn(restored_, shard)) {
    verdict_->Note(absl::StrCat("I7: ", Text(shard, batch), " are in the cut that the job goes on from"));
  }
  batches.push_back(batch);
}

int64_t ShardOracle::TrainedBefore(int64_t step, uint64_t shard) const {
  std::vector<Batch> before;
  if (auto found = batches_.find(shard); found != batches_.end()) before = found->second;
  std::sort(before.begin(), before.end(), [](const Batch& a, const Batch& b) { return a.begin < b.begin; });
  int64_t trained = NextIn(restored_, shard);
  for (const Batch& batch : before) {
    if (batch.step < step && batch.begin <= trained) trained = std::max(trained, batch.end);
  }
  return trained;
}

std::string ShardOracle::CheckClaim(const v1::CutRecord& record, uint64_t shard, int64_t claimed) const {
  const int64_t first_step = record.plan().first_step();
  for (const Batch& batch : batches_.at(shard)) {
    if (batch.step < first_step && batch.end > claimed) return absl::StrCat("does not know of ", Text(shard, batch));
  }
  const int64_t trained = TrainedBefore(first_step, shard);
  if (trained >= claimed) return "";
  return absl::StrCat("says that shard ", shard, " is trained up to example ", claimed, "; it is up to ", trained);
}

void ShardOracle::Done() const {
  for (uint64_t shard = 1; BeginOf(shard) < data_.examples; ++shard) {
    const int64_t trained = TrainedBefore(std::numeric_limits<int64_t>::max(), shard);
    if (trained >= EndOf(shard) || forgotten_.contains(shard)) continue;
    verdict_->Note(absl::StrCat("I8: the job is done, and examples ", trained, " to ", EndOf(shard), " of shard ",
                                shard, " are not trained"));
  }
}

void ShardOracle::Recorded(const v1::CutRecord& record) {
  std::set<uint64_t> shards;
  for (const auto& [shard, batches] : batches_) shards.insert(shard);
  for (const v1::ShardRange& range : record.shards().finished()) {
    for (uint64_t shard = range.first(); shard <= range.last(); ++shard) shards.insert(shard);
  }
  for (const v1::ShardPosition& position : record.shards().begun()) shards.insert(position.shard());
  for (uint64_t shard : shards) {
    if (forgotten_.contains(shard)) continue;
    batches_.try_emplace(shard);
    const std::string wrong = CheckClaim(record, shard, NextIn(record.shards(), shard));
    if (!wrong.empty()) verdict_->Note(absl::StrCat("I7: cut ", record.cut().id(), " ", wrong));
  }
}

}  // namespace rubato::simulation
