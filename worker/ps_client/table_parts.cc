#include "worker/ps_client/table_parts.h"

#include <algorithm>

#include "common/table_keys.h"

namespace rubato::worker {

std::vector<KeyPart> TableParts::Split(const std::vector<uint64_t>& keys) const {
  std::vector<KeyPart> parts(batches.size());
  auto begin = keys.begin();
  for (uint32_t shard = 0; shard < shards && begin != keys.end(); ++shard) {
    const auto end = std::partition_point(begin, keys.end(),
                                          [&](uint64_t key) { return ShardOfHash(hash.Of(key), shards) == shard; });
    if (begin == end) continue;
    KeyPart& part = parts[part_of_shard[shard]];
    part.keys.insert(part.keys.end(), begin, end);
    part.runs.push_back({static_cast<size_t>(begin - keys.begin()), static_cast<size_t>(end - begin)});
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
