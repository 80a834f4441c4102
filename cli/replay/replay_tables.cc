#include "cli/replay/replay_tables.h"

#include <algorithm>
#include <utility>

#include "common/status.h"
#include "common/table_keys.h"
#include "server/tables/table.h"

namespace rubato {
namespace {

// How much more memory a table may take than on the run's servers together: which rows are removed before others are
// added is decided shard by shard, and the shards of a replay do not go on together.
constexpr uint64_t kRoom = 2;

// The tables with as much memory as all servers of the run had for them.
ModelSpec WithRoom(ModelSpec model, uint32_t servers) {
  constexpr auto kMost = static_cast<uint64_t>(server::Table::kMostMemory);
  for (TableSpec& table : model.tables) {
    const uint64_t each = std::min(table.config.memory_bytes(), kMost);
    table.config.set_memory_bytes(std::min(kMost, each * kRoom * std::max(servers, 1u)));
  }
  return model;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ReplayTables>> ReplayTables::Create(const v1::JobConfig& config, const ModelSpec& model,
                                                                   const v1::JobDescription& job, uint32_t servers) {
  std::unique_ptr<ReplayTables> tables(new ReplayTables());
  tables->config_ = config;
  tables->config_.mutable_cluster()->set_partitions_per_server(1);
  tables->chunks_.resize(model.tables.size());
  for (const TableSpec& table : model.tables) tables->shards_of_table_.push_back(table.config.shards());
  std::vector<std::vector<uint32_t>> of_server(servers);
  tables->first_shard_ = static_cast<uint32_t>(job.chunks_size());
  for (uint32_t chunk = 0; chunk < static_cast<uint32_t>(job.chunks_size()); ++chunk) {
    const v1::ChunkPlacement& placement = job.chunks(static_cast<int>(chunk));
    if (!IsShard(placement)) continue;
    tables->first_shard_ = std::min(tables->first_shard_, chunk);
    const auto table = static_cast<size_t>(placement.tensor() - model.tensors.size());
    tables->shards_.push_back({static_cast<int>(table), static_cast<uint32_t>(placement.offset())});
    tables->server_of_shard_.push_back(placement.server());
    tables->chunks_[table].push_back(chunk);
    of_server[placement.server()].push_back(chunk);
  }
  const ModelSpec with_room = WithRoom(model, config.cluster().servers());
  for (const std::vector<uint32_t>& held : of_server) {
    RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<server::TableStore> store,
                            server::TableStore::Create(tables->config_, with_room, job, held));
    tables->stores_.push_back(std::move(store));
  }
  return tables;
}

std::vector<size_t> ReplayTables::SplitByShard(int table, absl::Span<const uint64_t> hashes) const {
  const uint32_t shards = shards_of_table_[static_cast<size_t>(table)];
  std::vector<size_t> begins;
  begins.reserve(shards + 1);
  auto at = hashes.begin();
  for (uint32_t shard = 0; shard < shards; ++shard) {
    begins.push_back(static_cast<size_t>(at - hashes.begin()));
    at = std::partition_point(at, hashes.end(), [&](uint64_t hash) { return ShardOfHash(hash, shards) <= shard; });
  }
  begins.push_back(hashes.size());
  return begins;
}

absl::Status ReplayTables::Apply(const server::ChunkRules::Update& update) {
  server::TableStore& store = StoreOf(update.chunk);
  RUBATO_RETURN_IF_ERROR(store.Apply(update));
  return store.Finish();
}

std::vector<uint8_t> ReplayTables::Read(uint32_t chunk, absl::Span<const uint64_t> hashes) {
  server::TableStore& store = StoreOf(chunk);
  const int table = ShardOf(chunk).table;
  std::vector<uint8_t> rows(store.EncodedBytes(table, hashes.size()));
  if (!rows.empty()) store.LookupEncoded(table, hashes, rows.data());
  return rows;
}

std::shared_ptr<server::ShardSnapshot> ReplayTables::Keep(uint32_t chunk) const { return StoreOf(chunk).Keep(chunk); }

}  // namespace rubato
