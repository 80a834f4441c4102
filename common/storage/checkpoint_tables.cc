#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/storage/checkpoint.h"

namespace rubato {
namespace {

// Puts shards together.
class TableAssembler {
 public:
  absl::Status Take(const CheckpointPart& part) {
    for (const v1::ShardRecord& record : part.manifest.shards()) {
      Assembly& table = TableOf(record);
      if (record.dimension() != table.dimension || record.shards() != table.seen.size()) {
        return absl::DataLossError(absl::StrCat(
            "table ", record.table(), ": shard ", record.shard(), " is one of ", record.shards(), " with rows of ",
            record.dimension(), " weights, another says ", table.seen.size(), " with ", table.dimension));
      }
      if (table.seen[record.shard()]) {
        return absl::DataLossError(
            absl::StrCat("table ", record.table(), ": shard ", record.shard(), " is there twice"));
      }
      table.seen[record.shard()] = true;
      std::vector<uint64_t> keys(record.rows());
      part.Copy(record.keys_at(), record.rows(), keys.data());
      const size_t first = table.rows.size();
      table.rows.resize(first + keys.size() * table.dimension);
      for (size_t i = 0; i < keys.size(); ++i) {
        part.Copy(record.rows_at() + sizeof(float) * i * record.row_floats(), table.dimension,
                  table.rows.data() + first + i * table.dimension);
        table.places.emplace_back(keys[i], table.places.size());
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<NamedTable>> Finish() {
    std::sort(tables_.begin(), tables_.end(),
              [](const Assembly& a, const Assembly& b) { return a.lowest_chunk < b.lowest_chunk; });
    std::vector<NamedTable> result;
    for (Assembly& table : tables_) {
      const auto missing = std::find(table.seen.begin(), table.seen.end(), false);
      if (missing != table.seen.end()) {
        return absl::DataLossError(
            absl::StrCat("table ", table.name, ": shard ", missing - table.seen.begin(), " is missing"));
      }
      std::sort(table.places.begin(), table.places.end());
      NamedTable& named = result.emplace_back();
      named.name = table.name;
      named.dimension = static_cast<int64_t>(table.dimension);
      named.rows.reserve(table.rows.size());
      for (const auto& [key, place] : table.places) {
        named.keys.push_back(key);
        const float* const row = table.rows.data() + place * table.dimension;
        named.rows.insert(named.rows.end(), row, row + table.dimension);
      }
    }
    return result;
  }

 private:
  struct Assembly {
    std::string name;
    size_t dimension;
    uint32_t lowest_chunk;
    std::vector<bool> seen;  // By shard.
    std::vector<std::pair<uint64_t, size_t>> places;
    std::vector<float> rows;
  };

  Assembly& TableOf(const v1::ShardRecord& record) {
    for (Assembly& table : tables_) {
      if (table.name != record.table()) continue;
      table.lowest_chunk = std::min(table.lowest_chunk, record.chunk());
      return table;
    }
    return tables_.emplace_back(Assembly{.name = record.table(),
                                         .dimension = record.dimension(),
                                         .lowest_chunk = record.chunk(),
                                         .seen = std::vector<bool>(record.shards()),
                                         .places = {},
                                         .rows = {}});
  }

  std::vector<Assembly> tables_;
};

}  // namespace

absl::StatusOr<std::vector<NamedTable>> ReadCheckpointTables(const std::string& directory) {
  RUBATO_ASSIGN_OR_RETURN(const std::vector<uint32_t> servers, ServersOfCheckpoint(directory));
  TableAssembler assembler;
  for (uint32_t server : servers) {
    RUBATO_ASSIGN_OR_RETURN(const v1::CheckpointManifest manifest,
                            ReadCheckpointManifest(directory, v1::TaskId::SERVER, server));
    if (manifest.shards().empty()) continue;
    RUBATO_ASSIGN_OR_RETURN(const CheckpointPart part, ReadCheckpointPart(directory, v1::TaskId::SERVER, server));
    RUBATO_RETURN_IF_ERROR(Annotate(assembler.Take(part), directory));
  }
  absl::StatusOr<std::vector<NamedTable>> tables = assembler.Finish();
  return tables.ok() ? std::move(tables) : Annotate(tables.status(), directory);
}

}  // namespace rubato
