#ifndef RUBATO_SERVER_TABLES_TABLE_H_
#define RUBATO_SERVER_TABLES_TABLE_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/key_hash.h"
#include "kernels/optimizer/isa.h"
#include "server/tables/push_counter.h"
#include "server/tables/row_format.h"
#include "server/tables/row_rule.h"
#include "server/tables/shard_index.h"
#include "server/tables/table_memory.h"

namespace rubato::server {

struct TableOptions {
  // For errors.
  std::string name;
  // A row's weights, 1 to 4096.
  int dimension = 0;
  RowFormula formula = RowFormula::kSgd;
  // Weights are kept as bf16. What an update makes of one is rounded at random, by the key's hash, RowRule::step and
  // the weight's place in the row, with the weight as the mean.
  bool is_bf16 = false;
  // A row's weights are uniform in [-initial_bound, initial_bound) before its first update, drawn from this seed and
  // the row's key. 0 with kFtrl, which computes weights from its state alone.
  float initial_bound = 0;
  uint64_t seed = 0;
  // Of KeyHash.
  uint64_t secret = 0;
  // The most memory of rows and index, at most kMostMemory.
  int64_t memory_bytes = 0;
  // A key gets its row with so many updates, 1 to PushCounter::kMost; until then it reads its initial weights, and its
  // gradients are dropped. Over 1: they are counted by so many counters for all virtual shards, a power of two, at
  // least Table::kShards lines of PushCounter.
  uint32_t admit_after = 1;
  uint64_t admission_counters = 0;
  // Over 0: a row without an update for so many steps (RowRule::step) is removed, within an eighth of them.
  uint64_t expire_after = 0;
  // Over 0: a virtual shard with more than its part of so many rows, Table::kShards at least, loses those whose last
  // update is the longest ago.
  uint64_t most_rows = 0;
};

// One of `count` equal parts of a table, a power of two and at most Table::kShards: the keys whose hashes begin with
// its number.
struct TableShard {
  uint32_t index = 0;
  uint32_t count = 1;
};

// Rows of weights by 64-bit keys, of which a batch touches a few: an embedding table, or a server's part of one. A key
// belongs to the virtual shard that its hash begins with. Looking up changes nothing: a row that is not there reads as
// its initial weights, and the first update makes it of the same. The weights that come of a sequence of updates have
// the same bits in every order of keys, and on every processor. Whether a key is admitted and when its row is removed
// follows from the updates of its virtual shard alone, which is the same wherever the shard is.
//
//   RUBATO_ASSIGN_OR_RETURN(auto table, Table::Create({.name = "users", .dimension = 16, .memory_bytes = 1 << 30}));
//   RUBATO_RETURN_IF_ERROR(table->Lookup(keys, weights));
//   RUBATO_RETURN_IF_ERROR(table->Apply(rule, keys, gradients, 1.0f / examples));
//
// Keys of a call come in increasing order of their hashes, each once: so they are merged only once, where they come
// from, and a shard's keys lie together. Whoever has hashed them gives the hashes themselves, which stand for them. Not
// thread-safe.
class Table {
 public:
  static constexpr int kShardBits = 8;
  static constexpr uint32_t kShards = 1 << kShardBits;
  static constexpr int64_t kMostMemory = int64_t{1} << 36;

  // InvalidArgument names the option; ResourceExhausted: see TableMemory.
  static absl::StatusOr<std::unique_ptr<Table>> Create(TableOptions options);

  // Writes the keys' weights to `weights`, `dimension` for each key. InvalidArgument names the first key out of order;
  // what is written then means nothing.
  absl::Status Lookup(absl::Span<const uint64_t> keys, float* weights) const;

  // Updates the keys' rows by `scale` times their gradients, `dimension` for each key. On an error nothing has changed:
  // InvalidArgument names the first key out of order, and ResourceExhausted the table, if new rows do not fit the
  // memory limit. (What the index grows by in a call that is taken may pass the limit; then the next new row does not
  // fit.)
  absl::Status Apply(const RowRule& rule, absl::Span<const uint64_t> keys, const float* gradients, float scale);

  // The same of keys with these hashes, which the caller has looked at: REQUIRES that each is over the one before it.
  void LookupHashes(absl::Span<const uint64_t> hashes, float* weights) const { lookup_(*this, hashes, weights); }
  absl::Status ApplyHashes(const RowRule& rule, absl::Span<const uint64_t> hashes, const float* gradients, float scale);

  // Calls `visit` with every key of the shard, ascending, its weights and state, which are there until it returns, and
  // the step of its last update, which is 0 in a table that removes no rows.
  using Visitor = std::function<void(uint64_t key, absl::Span<const float> row, uint32_t step)>;
  void VisitRows(TableShard shard, const Visitor& visit) const;

  // Puts rows of VisitRows in, row_floats() each: of keys of the shard, in any order, that have none yet. On an error
  // nothing has changed: InvalidArgument names a key that is of another shard, comes twice or has a row;
  // ResourceExhausted as of Apply.
  absl::Status Restore(TableShard shard, absl::Span<const uint64_t> keys, const float* rows);

  // How often keys of the shard without a row were pushed; empty if every key is admitted.
  std::vector<uint64_t> PushCounts(TableShard shard) const;
  // What PushCounts gave, or nothing. InvalidArgument: it is not of a shard of this size.
  absl::Status RestorePushCounts(TableShard shard, absl::Span<const uint64_t> counts);

  const KeyHash& hash() const { return hash_; }
  int64_t rows() const { return rows_; }
  int64_t rows_of(TableShard shard) const;
  // Since the table was made: rows that were removed, and gradients that were dropped because their keys had none yet.
  int64_t removed() const { return removed_; }
  int64_t not_admitted() const { return not_admitted_; }
  // Whether rows are removed.
  bool removes() const { return options_.expire_after > 0 || options_.most_rows > 0; }
  // Of a row as it is restored: weights and state, and, in a table that removes rows, the bits of its last update's
  // step.
  int row_floats() const { return static_cast<int>(format_.floats()) + (removes() ? 1 : 0); }
  // Of a row's weights and state, and of what is left of its last cache line, or of a half or quarter of one.
  int64_t row_bytes() const { return static_cast<int64_t>(row_bytes_); }
  // Of rows, index, counters and the list of rows that were removed.
  int64_t memory_bytes() const {
    return memory_->bytes() + counter_bytes_ + static_cast<int64_t>(sizeof(uint32_t) * free_rows_.capacity());
  }

  // For tests and benchmarks, on an instruction set that this processor supports.
  void UseIsa(Isa isa);

 private:
  struct Shard {
    ShardIndex index;
    // Rows that were taken of the memory together and are not used yet.
    uint32_t next_row = 0;
    uint32_t rows_left = 0;
    uint32_t rows = 0;
    // The highest step of any update of its rows; in an update, of those before. Whether one of them is updated in it.
    uint32_t step = 0;
    bool is_updated = false;
    // Null: nothing was counted yet.
    std::unique_ptr<PushCounter> counter;
  };
  friend struct TableLoops;

  explicit Table(TableOptions options, std::unique_ptr<TableMemory> memory);
  // InvalidArgument names the first key that is out of order.
  absl::StatusOr<std::vector<uint64_t>> HashesOf(absl::Span<const uint64_t> keys) const;
  absl::Status CheckRoom(absl::Span<const uint64_t> hashes) const;
  // Of hashes, ascending, with their places among the keys: whether all are the shard's, each once and without a row.
  absl::Status CheckNew(TableShard shard, absl::Span<const std::pair<uint64_t, size_t>> by_hash) const;
  absl::Status CheckRoomFor(int64_t new_rows) const;
  // The new row of a key that has none and is pushed, with the initial weights. 0: it is not admitted yet.
  uint32_t Admit(uint64_t hash, uint32_t step);
  // Whether Admit would make a row.
  bool WouldAdmit(uint64_t hash) const;
  PushCounter& CounterOf(Shard& shard);
  // Of a key that has a row, whose search begins at this line: its row is updated now.
  void NoteStep(uint64_t hash, uint32_t step, const ShardIndex::Line* line) {
    Shard& shard = ShardOf(hash);
    shard.index.SetStep(hash, StepOf(shard, step), line);
    shard.is_updated = true;
  }
  // In SSP and ASYNC a worker may be behind the others.
  static uint32_t StepOf(const Shard& shard, uint32_t step) { return std::max(shard.step, step); }
  // After an update of these keys: removes rows of their virtual shards that are to go.
  void RemoveRows(uint32_t step, absl::Span<const uint64_t> hashes);
  void RemoveRowsOf(Shard& shard, uint32_t phase, uint32_t before);
  Shard& ShardOf(uint64_t hash) { return shards_[hash >> (64 - kShardBits)]; }
  const Shard& ShardOf(uint64_t hash) const { return shards_[hash >> (64 - kShardBits)]; }
  char* RowAt(uint32_t row) const { return memory_->At(0) + (size_t{row} << unit_bits_); }
  void InitialWeights(uint64_t hash, float* weights) const;
  // The new row of a key that has none, of any contents, or with the initial ones.
  uint32_t TakeRow(uint64_t hash, uint32_t step = 0);
  uint32_t TakeMemory(Shard& shard);
  // That so many rows take, one after another.
  size_t LinesOf(size_t rows) const { return (rows * row_bytes_ - 1) / TableMemory::kLine + 1; }
  uint32_t AddRow(uint64_t hash, uint32_t step);

  const TableOptions options_;
  const KeyHash hash_;
  const RowFormat format_;
  // A row begins at a multiple of 2^unit_bits_ bytes, and its number says which: of a line, or, so that small rows
  // share lines, of a half or a quarter of one.
  const int unit_bits_;
  const size_t row_bytes_;
  const std::unique_ptr<TableMemory> memory_;
  std::vector<Shard> shards_;
  int64_t rows_ = 0;
  // That were removed, and are not used again yet.
  std::vector<uint32_t> free_rows_;
  int64_t removed_ = 0, not_admitted_ = 0;
  int64_t counter_bytes_ = 0;
  void (*lookup_)(const Table& table, absl::Span<const uint64_t> hashes, float* weights);
  void (*apply_)(Table& table, const RowRule& rule, absl::Span<const uint64_t> hashes, const float* gradients,
                 float scale);
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_TABLES_TABLE_H_
