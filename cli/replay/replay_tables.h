#ifndef RUBATO_CLI_REPLAY_REPLAY_TABLES_H_
#define RUBATO_CLI_REPLAY_REPLAY_TABLES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/model_spec.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"
#include "server/chunk_snapshot.h"
#include "server/rules/chunk_rules.h"
#include "server/table_store.h"

namespace rubato {

// The rows of a job's tables on all servers of a replay, each of which has its shards in a server's own TableStore.
// Keys are told by their hashes, ascending. Not thread-safe.
class ReplayTables {
 public:
  // Where a chunk that is a shard belongs.
  struct Shard {
    int table = 0;
    uint32_t shard = 0;
  };

  // `config` is the run's; `job` says which of `servers` servers has which shard. A table may take as much memory as it
  // did on all servers of the run together. ResourceExhausted: the system has not enough addresses.
  static absl::StatusOr<std::unique_ptr<ReplayTables>> Create(const v1::JobConfig& config, const ModelSpec& model,
                                                              const v1::JobDescription& job, uint32_t servers);

  // Whether the chunk is a shard.
  bool Has(uint32_t chunk) const { return chunk >= first_shard_; }
  const Shard& ShardOf(uint32_t chunk) const { return shards_[chunk - first_shard_]; }
  // A table's chunks, by shard.
  const std::vector<uint32_t>& ChunksOf(int table) const { return chunks_[static_cast<size_t>(table)]; }
  // Where the keys of each of a table's shards begin among `hashes`, and where they end.
  std::vector<size_t> SplitByShard(int table, absl::Span<const uint64_t> hashes) const;

  // Updates a shard. ResourceExhausted names a table that has no room for new rows.
  absl::Status Apply(const server::ChunkRules::Update& update);
  // The rows of a shard's keys, encoded as a server answers with them.
  std::vector<uint8_t> Read(uint32_t chunk, absl::Span<const uint64_t> hashes);
  // The shard as it is; its record lacks the version.
  std::shared_ptr<server::ShardSnapshot> Keep(uint32_t chunk) const;

 private:
  ReplayTables() = default;
  server::TableStore& StoreOf(uint32_t chunk) const { return *stores_[server_of_shard_[chunk - first_shard_]]; }

  // As of a server without partitions and with room for all; the stores refer to it.
  v1::JobConfig config_;
  uint32_t first_shard_ = 0;
  // From first_shard_ on.
  std::vector<Shard> shards_;
  std::vector<uint32_t> server_of_shard_;
  // By table.
  std::vector<uint32_t> shards_of_table_;
  std::vector<std::vector<uint32_t>> chunks_;
  std::vector<std::unique_ptr<server::TableStore>> stores_;
};

}  // namespace rubato

#endif  // RUBATO_CLI_REPLAY_REPLAY_TABLES_H_
