#include "worker/ps_client/table_parts.h"

#include <algorithm>
#include <cstring>

#include "common/mutants.h"
#include "common/table_keys.h"

namespace rubato::worker {

void KeyPart::Gather(const void* all, size_t each, void* out) const {
  auto* to = static_cast<char*>(out);
  for (const Run& run : runs) {
    std::memcpy(to, static_cast<const char*>(all) + each * run.begin, each * run.count);
    to += each * run.count;
  }
}

std::vector<KeyPart> TableParts::Split(const std::vector<uint64_t>& keys) const {
  std::vector<KeyPart> parts(batches.size());
  if (parts.size() == 1 && !RUBATO_MUTANT(kLastShardLost)) {
    // No need to look which shards there are.
    if (!keys.empty()) parts[0] = {.runs = {{0, keys.size()}}, .count = keys.size()};
    return parts;
  }
  auto begin = keys.begin();
  const uint32_t end_shard = RUBATO_MUTANT(kLastShardLost) ? shards - 1 : shards;
  for (uint32_t shard = 0; shard < end_shard && begin != keys.end(); ++shard) {
    const auto end = std::partition_point(begin, keys.end(),
                                          [&](uint64_t key) { return ShardOfHash(hash.Of(key), shards) == shard; });
    if (begin == end) continue;
    KeyPart& part = parts[part_of_shard[shard]];
    const auto first = static_cast<size_t>(begin - keys.begin());
    const auto count = static_cast<size_t>(end - begin);
    if (!part.runs.empty() && part.runs.back().begin + part.runs.back().count == first) {
      part.runs.back().count += count;
    } else {
      part.runs.push_back({first, count});
    }
    part.count += count;
    begin = end;
  }
  return parts;
}

std::vector<TableParts> PartsOfTables(const std::vector<TableSpec>& tables, uint64_t seed, const Batching& batching) {
  std::vector<TableParts> parts;
  for (size_t number = 0; number < tables.size(); ++number) {
    TableParts& table = parts.emplace_back(TableParts{.hash = HashOfTable(seed, static_cast<int>(number)),
                                                      .shards = tables[number].config.shards(),
                                                      .dimension = tables[number].dimension(),
                                                      .push = tables[number].config.push(),
                                                      .pull = tables[number].config.pull(),
                                                      .batches = {},
                                                      .part_of_shard = {}});
    for (int batch : batching.batch_of_shard[number]) {
      const auto known = std::find(table.batches.begin(), table.batches.end(), batch);
      table.part_of_shard.push_back(static_cast<size_t>(known - table.batches.begin()));
      if (known == table.batches.end()) table.batches.push_back(batch);
    }
  }
  return parts;
}

}  // namespace rubato::worker
