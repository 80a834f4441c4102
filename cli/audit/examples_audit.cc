#include "cli/audit/examples_audit.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace rubato {

bool ExamplesAudit::Add(int64_t begin, int64_t end, Ranges* ranges) {
  bool there = false;
  auto next = ranges->lower_bound(begin);
  if (next != ranges->begin() && std::prev(next)->second >= begin) --next;
  while (next != ranges->end() && next->first <= end) {
    there = there || (next->second > begin && next->first < end);
    begin = std::min(begin, next->first);
    end = std::max(end, next->second);
    next = ranges->erase(next);
  }
  ranges->emplace(begin, end);
  return there;
}

int64_t ExamplesAudit::Count(const Shards& shards) {
  int64_t count = 0;
  for (const auto& [shard, ranges] : shards) {
    for (const auto& [begin, end] : ranges) count += end - begin;
  }
  return count;
}

void ExamplesAudit::OnPush(const std::string& where, const v1::UpdateRecord& push) {
  const v1::ShardSlice& slice = push.slice();
  if (slice.shard() == 0 || push.step() >= end_ || slice.begin() >= slice.end()) return;
  report_->Check(Invariant::kExamples);
  if (!Add(slice.begin(), slice.end(), &chunks_[push.chunk()][slice.shard()])) return;
  report_->Break(Invariant::kExamples, [&] {
    return absl::StrCat(where, ", chunk ", push.chunk(), ": step ", push.step(), " of worker ", push.worker(),
                        " trains examples ", slice.begin(), " to ", slice.end(), " of shard ", slice.shard(),
                        ", and some of these were trained before");
  });
}

void ExamplesAudit::Finish() {
  Shards all;
  for (const auto& [chunk, shards] : chunks_) {
    const int64_t count = Count(shards);
    ExamplesReport& examples = report_->examples;
    examples.chunk_least = all.empty() ? count : std::min(examples.chunk_least, count);
    examples.chunk_most = std::max(examples.chunk_most, count);
    for (const auto& [shard, ranges] : shards) {
      for (const auto& [begin, end] : ranges) Add(begin, end, &all[shard]);
    }
  }
  report_->examples.trained = Count(all);
}

}  // namespace rubato
