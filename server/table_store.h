#ifndef RUBATO_SERVER_TABLE_STORE_H_
#define RUBATO_SERVER_TABLE_STORE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/model_spec.h"
#include "common/storage/checkpoint_restorer.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"
#include "server/chunk_snapshot.h"
#include "server/rules/chunk_rules.h"
#include "server/rules/update_mix.h"
#include "server/tables/table.h"

namespace rubato::server {

// One partition's part of the job's tables, whose shards are chunks to the rules. A message's shards are updated
// together, so that fetching their rows from memory never ends before the next shard's begins. Not thread-safe: used by
// whoever is at work on the partition.
//
//   if (tables->Has(update.chunk)) RUBATO_RETURN_IF_ERROR(tables->Apply(update));
//   ...
//   RUBATO_RETURN_IF_ERROR(tables->Finish());
class TableStore {
 public:
  struct Counts {
    int64_t rows = 0;
    int64_t memory_bytes = 0;
    // Updates of rows; rows that were removed; gradients of keys that were not admitted yet.
    int64_t applied = 0;
    int64_t removed = 0;
    int64_t not_admitted = 0;
  };

  // `chunks` are the partition's; those of tensors are passed over. A table's limit on memory is for all partitions of
  // the server together. ResourceExhausted: the system has not enough addresses.
  static absl::StatusOr<std::unique_ptr<TableStore>> Create(const v1::JobConfig& config, const ModelSpec& model,
                                                            const v1::JobDescription& job,
                                                            const std::vector<uint32_t>& chunks);

  // Whether the chunk is one of these tables' shards.
  bool Has(uint32_t chunk) const { return shards_.contains(chunk); }
  bool empty() const { return shards_.empty(); }

  // The example-weighted mean of the contributions goes through the table's optimizer: of each key what members pushed,
  // in their order, with nothing for those that pushed none. Each row is updated once, by Finish at the latest; an
  // update that does not go on where the one before ended, in the same messages, finishes that first.
  // ResourceExhausted names a table whose memory has no room for new rows; the shards that were to be updated together
  // have not changed then.
  absl::Status Apply(const ChunkRules::Update& update);
  // REQUIRED after Apply, before anything else is called, and before the messages with the gradients are answered.
  absl::Status Finish();

  // The shard as it is: a copy. `record` lacks its version and watermarks, of which the store does not know.
  std::shared_ptr<ShardSnapshot> Keep(uint32_t chunk) const;
  // Has `restorer` put in all shards; before anything else is called.
  void BeginRestore(CheckpointRestorer* restorer);
  // Puts in a shard that has no rows yet, of what Keep gave. Errors of Table::Restore and RestorePushCounts.
  absl::Status Restore(uint32_t chunk, const CheckpointShard& kept);
  // What was said of a shard's version.
  int64_t RestoredVersion(uint32_t chunk) const { return shards_.at(chunk).restored_version; }

  // Writes the rows of the keys with these hashes (TableMessage.asked) to `rows`. REQUIRES: there is one.
  void Lookup(int table, absl::Span<const uint64_t> hashes, float* rows) const;
  // The same as a message has them, encoded by the table's `pull`: so many bytes, at a multiple of 4.
  size_t EncodedBytes(int table, size_t rows) const;
  void LookupEncoded(int table, absl::Span<const uint64_t> hashes, uint8_t* rows);

  Counts counts() const;

 private:
  struct Shard {
    int table;
    uint32_t shard;
    int64_t restored_version = 0;
  };
  struct OneTable {
    TableSpec spec;
    // Null: the partition has no shard of it.
    std::unique_ptr<Table> rows;
    RowRule rule;
    double learning_rate = 0;
  };
  // Of one member: hashes of keys, what is pushed for each, and how much that counts.
  struct Pushed {
    absl::Span<const uint64_t> hashes;
    const float* rows = nullptr;
    float weight = 1;
    // Of its message.
    std::shared_ptr<const EncodedGradient> owner;
  };
  // Updates of shards that follow each other in the same messages.
  struct Joint {
    int table = 0;
    std::vector<Pushed> members;
    // Of the first member, of the plan, and of UpdateMix.
    std::shared_ptr<const PushHeader> header;
    double learning_rate_scale = 1;
    double share_with_examples = 1;
  };

  explicit TableStore(const v1::JobConfig& config) : config_(config) {}
  RowRule RuleOf(const Joint& joint) const;
  // Adds an update to joint_, if it goes on there.
  bool Join(const Joint& update);
  // Hashes of all members' keys, each once, and their gradients' weighted sums.
  void Merge(int64_t dimension, std::vector<Pushed> members);

  const v1::JobConfig& config_;
  std::vector<OneTable> tables_;
  absl::flat_hash_map<uint32_t, Shard> shards_;
  // Taken and not applied yet. No members: nothing is.
  Joint joint_;
  // What members pushed, merged.
  std::vector<uint64_t> hashes_;
  std::vector<float> gradients_;
  // Rows that are about to be encoded.
  std::vector<float> encoded_from_;
  // With those of keys that were not admitted.
  int64_t gradients_taken_ = 0;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_TABLE_STORE_H_
