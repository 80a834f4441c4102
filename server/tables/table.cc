#include "server/tables/table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/random.h"
#include "common/status.h"
#include "server/tables/hash_keys.h"
#include "server/tables/table_loops.h"

namespace rubato::server {
namespace {

constexpr int kMostDimension = 4096;
// A shard takes memory for several rows at a time: for a sixteenth of those it has, and at most this.
constexpr size_t kRowsTogetherBytes = size_t{64} << 10;

absl::Status CheckOptions(const TableOptions& options) {
  const auto refuse = [&](const auto&... text) {
    return absl::InvalidArgumentError(absl::StrCat("table '", options.name, "': ", text...));
  };
  if (options.dimension < 1 || options.dimension > kMostDimension) {
    return refuse("dimension: ", options.dimension, "; 1 to ", kMostDimension, " is allowed");
  }
  if (options.memory_bytes < 1 || options.memory_bytes > Table::kMostMemory) {
    return refuse("memory_bytes: ", options.memory_bytes, "; 1 to ", Table::kMostMemory, " is allowed");
  }
  if (!(options.initial_bound >= 0 && options.initial_bound <= 1e6f)) {
    return refuse("initial_bound: ", options.initial_bound, "; 0 to 1e6 is allowed");
  }
  if (options.admit_after < 1 || options.admit_after > PushCounter::kMost) {
    return refuse("admit_after: ", options.admit_after, "; 1 to ", PushCounter::kMost, " is allowed");
  }
  constexpr uint64_t kFewestCounters = Table::kShards * PushCounter::kLine;
  if (options.admit_after > 1 &&
      (!std::has_single_bit(options.admission_counters) || options.admission_counters < kFewestCounters)) {
    return refuse("admission_counters: ", options.admission_counters, "; a power of two, ", kFewestCounters,
                  " or more, is allowed");
  }
  if (options.most_rows > 0 && options.most_rows < Table::kShards) {
    return refuse("most_rows: ", options.most_rows, "; 0, or ", Table::kShards, " or more, is allowed");
  }
  if (options.formula == RowFormula::kFtrl && options.initial_bound != 0) {
    return refuse("initial_bound: ", options.initial_bound, "; FTRL begins at 0");
  }
  return absl::OkStatus();
}

// Addresses for a table: with what an index of as many rows takes at its worst, and segments that were outgrown, which
// is less than rows of one line.
size_t AddressesOf(const TableOptions& options) {
  return static_cast<size_t>(3 * options.memory_bytes + (int64_t{256} << 20));
}

// The part of a cache line that a row fits, of which 32 bits can count those of all addresses.
int UnitBitsOf(const TableOptions& options, size_t row_bytes) {
  int bits = std::countr_zero(TableMemory::kLine);
  while (bits > 4 && row_bytes <= size_t{1} << (bits - 1) && AddressesOf(options) >> (bits - 1) <= UINT32_MAX) --bits;
  return bits;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Table>> Table::Create(TableOptions options) {
  RUBATO_RETURN_IF_ERROR(CheckOptions(options));
  RUBATO_ASSIGN_OR_RETURN(auto memory, TableMemory::Create(AddressesOf(options)));
  return std::unique_ptr<Table>(new Table(std::move(options), std::move(memory)));
}

Table::Table(TableOptions options, std::unique_ptr<TableMemory> memory)
    : options_(std::move(options)),
      hash_(options_.secret),
      format_{.dimension = options_.dimension, .formula = options_.formula, .is_bf16 = options_.is_bf16},
      unit_bits_(UnitBitsOf(options_, format_.bytes())),
      row_bytes_((((format_.bytes() - 1) >> unit_bits_) + 1) << unit_bits_),
      memory_(std::move(memory)) {
  for (uint32_t shard = 0; shard < kShards; ++shard) {
    shards_.push_back({.index = ShardIndex(memory_.get(), shard, kShardBits)});
  }
  UseIsa(BestIsa());
}

void Table::UseIsa(Isa isa) {
  lookup_ = TableLookupOn(isa, format_);
  apply_ = TableApplyOn(isa, format_);
}

absl::Status Table::Lookup(absl::Span<const uint64_t> keys, float* weights) const {
  RUBATO_ASSIGN_OR_RETURN(const std::vector<uint64_t> hashes, HashesOf(keys));
  LookupHashes(hashes, weights);
  return absl::OkStatus();
}

absl::Status Table::Apply(const RowRule& rule, absl::Span<const uint64_t> keys, const float* gradients, float scale) {
  RUBATO_ASSIGN_OR_RETURN(const std::vector<uint64_t> hashes, HashesOf(keys));
  return ApplyHashes(rule, hashes, gradients, scale);
}

absl::Status Table::ApplyHashes(const RowRule& rule, absl::Span<const uint64_t> hashes, const float* gradients,
                                float scale) {
  RUBATO_RETURN_IF_ERROR(CheckRoom(hashes));
  apply_(*this, rule, hashes, gradients, scale);
  if (removes()) RemoveRows(rule.step, hashes);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint64_t>> Table::HashesOf(absl::Span<const uint64_t> keys) const {
  std::vector<uint64_t> hashes(keys.size());
  HashKeys(hash_, keys, hashes.data());
  for (size_t i = 1; i < keys.size(); ++i) {
    if (hashes[i - 1] < hashes[i]) [[likely]]
      continue;
    return absl::InvalidArgumentError(absl::StrCat("table '", options_.name, "': key ", keys[i], " at ", i,
                                                   keys[i] == keys[i - 1] ? " comes twice" : " is out of order"));
  }
  return hashes;
}

absl::Status Table::CheckRoom(absl::Span<const uint64_t> hashes) const {
  const int64_t left = options_.memory_bytes - memory_bytes();
  if (static_cast<int64_t>(hashes.size()) * row_bytes() <= left) [[likely]]
    return absl::OkStatus();
  int64_t missing = 0;
  for (const uint64_t hash : hashes) missing += ShardOf(hash).index.Find(hash) == 0 && WouldAdmit(hash);
  return CheckRoomFor(missing);
}

absl::Status Table::CheckRoomFor(int64_t new_rows) const {
  const int64_t more = std::max<int64_t>(0, new_rows - static_cast<int64_t>(free_rows_.size()));
  if (more == 0 || more * row_bytes() <= options_.memory_bytes - memory_bytes()) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("table '", options_.name, "': ", new_rows, " new rows of ",
                                                   row_bytes(), " bytes; it has ", rows_, " rows and takes ",
                                                   memory_bytes(), " of ", options_.memory_bytes, " bytes"));
}

void Table::InitialWeights(uint64_t hash, float* weights) const {
  if (options_.initial_bound == 0) {
    std::fill_n(weights, options_.dimension, 0.0f);
    return;
  }
  const uint64_t key = hash_.KeyOf(hash);
  const float step = options_.initial_bound / (1 << 23);
  for (int i = 0; i < options_.dimension; i += 4) {
    const std::array<uint32_t, 4> words = PhiloxBlock(options_.seed, key, i / 4);
    for (int j = 0; j < std::min(4, options_.dimension - i); ++j) {
      // 24 bits, of which float32 loses none.
      const float weight = step * static_cast<float>(static_cast<int32_t>(words[j] >> 8) - (1 << 23));
      weights[i + j] = format_.Rounded(weight);
    }
  }
}

uint32_t Table::TakeRow(uint64_t hash, uint32_t step) {
  Shard& shard = ShardOf(hash);
  const uint32_t row = TakeMemory(shard);
  ++shard.rows;
  shard.index.Insert(hash, row, step);
  ++rows_;
  return row;
}

uint32_t Table::TakeMemory(Shard& shard) {
  if (shard.rows_left == 0 && !free_rows_.empty()) {
    const uint32_t row = free_rows_.back();
    free_rows_.pop_back();
    return row;
  }
  if (shard.rows_left == 0) {
    const size_t most = std::max<size_t>(1, kRowsTogetherBytes / row_bytes_);
    const size_t fresh = std::clamp<size_t>(shard.rows / 16, 1, most);
    // What an index has outgrown has room for fewer than a fourth of its rows.
    const size_t returned = std::max<size_t>(fresh, shard.rows / 4);
    const TableMemory::Lines lines = memory_->TakeReturned(LinesOf(1), LinesOf(returned), LinesOf(fresh));
    shard.next_row = lines.at << (std::countr_zero(TableMemory::kLine) - unit_bits_);
    shard.rows_left = static_cast<uint32_t>(lines.count * TableMemory::kLine / row_bytes_);
  }
  const uint32_t row = shard.next_row;
  shard.next_row += static_cast<uint32_t>(row_bytes_ >> unit_bits_);
  --shard.rows_left;
  return row;
}

uint32_t Table::AddRow(uint64_t hash, uint32_t step) {
  const uint32_t row = TakeRow(hash, step);
  std::memset(RowAt(row), 0, row_bytes_);
  std::vector<float> weights(static_cast<size_t>(options_.dimension));
  InitialWeights(hash, weights.data());
  format_.WriteWeights(weights.data(), RowAt(row));
  return row;
}

int64_t Table::rows_of(TableShard shard) const {
  const uint32_t each = kShards / shard.count;
  int64_t rows = 0;
  for (uint32_t i = each * shard.index; i < each * (shard.index + 1); ++i) rows += shards_[i].rows;
  return rows;
}

void Table::VisitRows(TableShard shard, const Visitor& visit) const {
  struct KeyAndRow {
    uint64_t key;
    uint32_t row, step;
  };
  std::vector<KeyAndRow> sorted;
  sorted.reserve(static_cast<size_t>(rows_of(shard)));
  const uint32_t each = kShards / shard.count;
  for (uint32_t i = each * shard.index; i < each * (shard.index + 1); ++i) {
    for (const auto& [hash, row, step] : shards_[i].index.Entries()) sorted.push_back({hash_.KeyOf(hash), row, step});
  }
  std::sort(sorted.begin(), sorted.end(), [](const KeyAndRow& a, const KeyAndRow& b) { return a.key < b.key; });
  std::vector<float> values(format_.floats());
  for (const auto& [key, row, step] : sorted) {
    format_.Read(RowAt(row), values.data());
    visit(key, values, step);
  }
}

absl::Status Table::Restore(TableShard shard, absl::Span<const uint64_t> keys, const float* rows) {
  // With their places among the keys. In this order rows lie in memory as updates come to them.
  std::vector<std::pair<uint64_t, size_t>> by_hash(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) by_hash[i] = {hash_.Of(keys[i]), i};
  std::sort(by_hash.begin(), by_hash.end());
  RUBATO_RETURN_IF_ERROR(CheckNew(shard, by_hash));
  RUBATO_RETURN_IF_ERROR(CheckRoomFor(static_cast<int64_t>(keys.size())));
  for (const auto& [hash, at] : by_hash) {
    const float* const from = rows + static_cast<size_t>(row_floats()) * at;
    uint32_t step = 0;
    if (removes()) std::memcpy(&step, from + format_.floats(), sizeof(step));
    Shard& its = ShardOf(hash);
    its.step = std::max(its.step, step);
    format_.Write(from, RowAt(TakeRow(hash, step)));
  }
  return absl::OkStatus();
}

absl::Status Table::CheckNew(TableShard shard, absl::Span<const std::pair<uint64_t, size_t>> by_hash) const {
  const auto refuse = [&](size_t i, const auto&... text) {
    const auto& [hash, at] = by_hash[i];
    return absl::InvalidArgumentError(
        absl::StrCat("table '", options_.name, "': key ", hash_.KeyOf(hash), " at ", at, text...));
  };
  const uint64_t part_bits = std::countr_zero(shard.count);
  for (size_t i = 0; i < by_hash.size(); ++i) {
    const uint64_t hash = by_hash[i].first;
    // Twice, as a shift by all 64 bits means nothing.
    if (hash >> 1 >> (63 - part_bits) != shard.index) {
      return refuse(i, " is not of shard ", shard.index, " of ", shard.count);
    }
    if (i > 0 && hash == by_hash[i - 1].first) return refuse(i, " comes twice");
    if (ShardOf(hash).index.Find(hash) != 0) return refuse(i, " has a row already");
  }
  return absl::OkStatus();
}

}  // namespace rubato::server
