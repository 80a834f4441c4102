// Which keys have a row: those that were pushed often enough, and not too long ago.

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/tables/table.h"

namespace rubato::server {

PushCounter& Table::CounterOf(Shard& shard) {
  if (shard.counter == nullptr) {
    const auto counters = static_cast<size_t>(options_.admission_counters / kShards);
    shard.counter = std::make_unique<PushCounter>(counters);
    counter_bytes_ += static_cast<int64_t>(counters);
  }
  return *shard.counter;
}

uint32_t Table::Admit(uint64_t hash, uint32_t step) {
  Shard& shard = ShardOf(hash);
  if (options_.admit_after > 1 && CounterOf(shard).Count(hash) < options_.admit_after) {
    ++not_admitted_;
    return 0;
  }
  if (!removes()) return AddRow(hash, 0);
  shard.is_updated = true;
  return AddRow(hash, StepOf(shard, step));
}

bool Table::WouldAdmit(uint64_t hash) const {
  if (options_.admit_after == 1) return true;
  const Shard& shard = ShardOf(hash);
  return shard.counter != nullptr && shard.counter->CountOf(hash) + 1 >= options_.admit_after;
}

void Table::RemoveRows(uint32_t step, absl::Span<const uint64_t> hashes) {
  for (const uint64_t hash : hashes) {
    Shard& shard = ShardOf(hash);
    // Once, with the first of its keys.
    if (!std::exchange(shard.is_updated, false)) continue;
    const uint32_t before = shard.step;
    shard.step = StepOf(shard, step);
    RemoveRowsOf(shard, static_cast<uint32_t>(hash >> (64 - kShardBits)), before);
  }
}

void Table::RemoveRowsOf(Shard& shard, uint32_t phase, uint32_t before) {
  // Looking for rows that have expired takes as long as looking at all: now and then, and not in all shards at once.
  const uint64_t every = std::max<uint64_t>(1, options_.expire_after / 8);
  const bool expires =
      options_.expire_after > 0 && (shard.step + uint64_t{phase}) / every != (before + uint64_t{phase}) / every;
  const uint64_t most = options_.most_rows / kShards;
  const bool overflows = most > 0 && shard.rows > most;
  if (!expires && !overflows) return;
  std::vector<ShardIndex::Entry> entries = shard.index.Entries();
  // The newest first, and of one step those with the lowest hashes.
  std::vector<std::pair<uint32_t, uint64_t>> ages;
  uint32_t oldest_step = 0;
  uint64_t highest_hash = UINT64_MAX;
  if (overflows) {
    // A few more than must go, so that this is not done for each new row.
    const auto left = static_cast<size_t>(most - most / 16);
    ages.reserve(entries.size());
    for (const ShardIndex::Entry& entry : entries) ages.emplace_back(UINT32_MAX - entry.step, entry.hash);
    const auto last = ages.begin() + static_cast<ptrdiff_t>(left - 1);
    std::nth_element(ages.begin(), last, ages.end());
    oldest_step = UINT32_MAX - last->first;
    highest_hash = last->second;
  }
  const auto goes = [&](const ShardIndex::Entry& entry) {
    if (expires && entry.step + options_.expire_after < shard.step) return true;
    return entry.step < oldest_step || (entry.step == oldest_step && entry.hash > highest_hash);
  };
  size_t kept = 0;
  for (const ShardIndex::Entry& entry : entries) {
    if (goes(entry)) {
      free_rows_.push_back(entry.row);
    } else {
      entries[kept++] = entry;
    }
  }
  const size_t removed = entries.size() - kept;
  if (removed == 0) return;
  entries.resize(kept);
  shard.index.Keep(entries);
  shard.rows -= static_cast<uint32_t>(removed);
  rows_ -= static_cast<int64_t>(removed);
  removed_ += static_cast<int64_t>(removed);
}

std::vector<uint64_t> Table::PushCounts(TableShard shard) const {
  std::vector<uint64_t> counts;
  if (options_.admit_after == 1) return counts;
  const uint32_t each = kShards / shard.count;
  const size_t words = PushCounter::SavedWords(options_.admission_counters / kShards);
  for (uint32_t i = each * shard.index; i < each * (shard.index + 1); ++i) {
    const PushCounter* const counter = shards_[i].counter.get();
    const std::vector<uint64_t> saved = counter != nullptr ? counter->Save() : std::vector<uint64_t>(words);
    counts.insert(counts.end(), saved.begin(), saved.end());
  }
  return counts;
}

absl::Status Table::RestorePushCounts(TableShard shard, absl::Span<const uint64_t> counts) {
  const uint32_t each = kShards / shard.count;
  const bool counted = options_.admit_after > 1;
  const size_t words = counted ? PushCounter::SavedWords(options_.admission_counters / kShards) : 0;
  // Nothing was counted where every key was admitted.
  if (counts.empty()) return absl::OkStatus();
  if (counts.size() != words * each) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table '", options_.name, "': ", sizeof(uint64_t) * counts.size(), " bytes of counted pushes, with the job's ",
        "admit_after and admission_counters ", sizeof(uint64_t) * words * each));
  }
  for (uint32_t i = 0; i < each; ++i) {
    CounterOf(shards_[each * shard.index + i]).Restore(counts.subspan(words * i, words));
  }
  return absl::OkStatus();
}

}  // namespace rubato::server
