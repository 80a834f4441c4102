// What ReplayServers does about rows of tables.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/replay/replay_servers.h"
#include "common/status.h"

namespace rubato {

bool ReplayServers::ReadRows(size_t member, size_t step, uint32_t chunk) {
  const ReplayTables::Shard& shard = options_.tables->ShardOf(chunk);
  const auto found = asked_.find({{member, step}, shard.table});
  if (found == asked_.end()) return false;
  AskedRows& asked = found->second;
  const size_t begin = asked.begins[shard.shard], end = asked.begins[shard.shard + 1];
  asked.rows[shard.shard] = options_.tables->Read(chunk, asked.message->asked.subspan(begin, end - begin));
  --asked.missing;
  return true;
}

void ReplayServers::AskRows(size_t member, size_t step, std::shared_ptr<const server::TableMessage> asked) {
  const int table = asked->table;
  const std::vector<uint32_t>& chunks = options_.tables->ChunksOf(table);
  std::vector<size_t> begins = options_.tables->SplitByShard(table, asked->asked);
  MutexLock lock(mu_);
  AskedRows& wanted = asked_[{{member, step}, table}];
  wanted = {.message = std::move(asked), .begins = std::move(begins), .rows = {}, .missing = chunks.size()};
  wanted.rows.resize(chunks.size());
  for (uint32_t chunk : chunks) {
    // Otherwise its version is still to come.
    if (chunks_[chunk].unread.erase({member, step}) == 0) continue;
    ReadRows(member, step, chunk);
    ApplyWhatIsDue(chunk);
  }
}

absl::StatusOr<std::vector<std::vector<uint8_t>>> ReplayServers::AwaitRows(size_t member, size_t step, int table) {
  const std::vector<uint32_t>& chunks = options_.tables->ChunksOf(table);
  const std::vector<int64_t>& versions = options_.run->members[member].steps[step].versions;
  MutexLock lock(mu_);
  const auto found = asked_.find({{member, step}, table});
  const AskedRows& asked = found->second;
  const auto last = std::find_if(chunks.begin(), chunks.end(), [&](uint32_t chunk) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return chunks_[chunk].version < versions[chunk];
  });
  RUBATO_RETURN_IF_ERROR(Wait(
      member, [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return asked.missing == 0; },
      last == chunks.end() ? std::string() : DescribeWait(member, step, *last)));
  return std::move(asked_.extract(found).mapped().rows);
}

std::vector<std::string> ReplayServers::UpdatesThatWaitForReaders() const {
  std::vector<std::string> waits;
  for (uint32_t index = 0; index < chunks_.size(); ++index) {
    const Chunk& chunk = chunks_[index];
    if (chunk.unread.empty() || !HasNextUpdate(chunk, options_.run->updates[index])) continue;
    const auto& [member, step] = *chunk.unread.begin();
    waits.push_back(absl::StrCat("version ", chunk.version + 1, " of chunk ", index, " waits for ",
                                 Describe(member, step), " to read rows of version ", chunk.version));
  }
  return waits;
}

}  // namespace rubato
