#include "server/table_store.h"

#include <algorithm>
#include <utility>

#include "absl/base/casts.h"
#include "absl/strings/str_cat.h"
#include "common/codec_traits.h"
#include "common/learning_rate_schedule.h"
#include "common/mutants.h"
#include "common/optimizer_traits.h"
#include "common/status.h"
#include "common/table_keys.h"
#include "kernels/codec/codec.h"
#include "server/table_message.h"

namespace rubato::server {
namespace {

RowFormula FormulaOf(v1::TableConfig::Algorithm algorithm) {
  switch (algorithm) {
    case v1::TableConfig::ADAGRAD:
      return RowFormula::kAdaGrad;
    case v1::TableConfig::ROW_WISE_ADAGRAD:
      return RowFormula::kRowWiseAdaGrad;
    case v1::TableConfig::LAZY_ADAM:
      return RowFormula::kLazyAdam;
    case v1::TableConfig::FTRL:
      return RowFormula::kFtrl;
    default:
      return RowFormula::kSgd;
  }
}

// The algorithm whose learning rate behaves like this one's when an update has fewer examples.
v1::OptimizerConfig::Algorithm KindOf(v1::TableConfig::Algorithm algorithm) {
  return algorithm == v1::TableConfig::SGD         ? v1::OptimizerConfig::SGD
         : algorithm == v1::TableConfig::LAZY_ADAM ? v1::OptimizerConfig::ADAM
                                                   : v1::OptimizerConfig::ADAGRAD;
}

// Without the learning rate.
RowRule RuleOf(const v1::TableConfig& config) {
  RowRule rule;
  rule.update.epsilon = static_cast<float>(config.epsilon());
  rule.update.beta1 = static_cast<float>(config.beta1());
  rule.update.beta1_complement = static_cast<float>(1 - config.beta1());
  rule.update.beta2 = static_cast<float>(config.beta2());
  rule.update.beta2_complement = static_cast<float>(1 - config.beta2());
  if (config.algorithm() == v1::TableConfig::LAZY_ADAM) {
    rule.corrections = std::make_shared<const AdamCorrections>(config.beta1(), config.beta2());
  }
  rule.beta = static_cast<float>(config.beta());
  rule.l1 = static_cast<float>(config.l1());
  rule.l2 = static_cast<float>(config.l2());
  return rule;
}

// What members pushed is merged so much at a time, for which the caches have room.
constexpr size_t kMergedBytes = size_t{256} << 10;

// float32 of rows that are looked up before they are encoded: they stay in the second-level cache.
constexpr size_t kEncodedTogether = size_t{32} << 10;

// Whether both are of the same message.
bool SameOwner(const std::shared_ptr<const EncodedGradient>& a, const std::shared_ptr<const EncodedGradient>& b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TableStore>> TableStore::Create(const v1::JobConfig& config, const ModelSpec& model,
                                                               const v1::JobDescription& job,
                                                               const std::vector<uint32_t>& chunks) {
  std::unique_ptr<TableStore> store(new TableStore(config));
  for (const TableSpec& spec : model.tables) {
    store->tables_.push_back({.spec = spec,
                              .rows = nullptr,
                              .rule = server::RuleOf(spec.config),
                              .learning_rate = spec.config.learning_rate()});
  }
  for (uint32_t chunk : chunks) {
    const v1::ChunkPlacement& placement = job.chunks(static_cast<int>(chunk));
    if (!IsShard(placement)) continue;
    const auto number = static_cast<int>(placement.tensor() - model.tensors.size());
    store->shards_[chunk] = {number, static_cast<uint32_t>(placement.offset())};
    OneTable& table = store->tables_[number];
    if (table.rows != nullptr) continue;
    const v1::TableConfig& wanted = table.spec.config;
    TableOptions options = {
        .name = wanted.name(),
        .dimension = static_cast<int>(wanted.dimension()),
        .formula = FormulaOf(wanted.algorithm()),
        .is_bf16 = wanted.precision() == v1::TableConfig::BF16,
        .initial_bound = static_cast<float>(wanted.initial_bound()),
        .seed = SeedOfTable(config.seed(), number) + (RUBATO_MUTANT(kRowsDrawnAnew) && job.has_restore() ? 1 : 0),
        .secret = SecretOfTable(config.seed(), number),
        .memory_bytes = static_cast<int64_t>(wanted.memory_bytes()) / config.cluster().partitions_per_server(),
        .admit_after = wanted.admit_after(),
        .admission_counters = wanted.admission_counters(),
        .expire_after = wanted.expire_after_steps(),
        .most_rows = wanted.most_rows()};
    RUBATO_ASSIGN_OR_RETURN(table.rows, Table::Create(std::move(options)));
  }
  return store;
}

RowRule TableStore::RuleOf(const Joint& joint) const {
  const OneTable& table = tables_[joint.table];
  RowRule rule = table.rule;
  rule.update.learning_rate = static_cast<float>(table.learning_rate);
  rule.step = static_cast<uint32_t>(std::clamp<int64_t>(joint.header->step, 0, UINT32_MAX));
  // Its weights are made anew from the sums of all gradients and the rate: with another rate they would be others.
  if (table.spec.config.algorithm() == v1::TableConfig::FTRL) return rule;
  rule.update.learning_rate =
      static_cast<float>(table.learning_rate * joint.learning_rate_scale *
                         ScheduleFactor(config_.optimizer().schedule(), joint.header->epoch, joint.header->step) *
                         LearningRateFactor(KindOf(table.spec.config.algorithm()), joint.share_with_examples));
  return rule;
}

bool TableStore::Join(const Joint& update) {
  const bool same_rule = joint_.table == update.table && joint_.members.size() == update.members.size() &&
                         joint_.header == update.header && joint_.learning_rate_scale == update.learning_rate_scale &&
                         joint_.share_with_examples == update.share_with_examples;
  if (!same_rule) return false;
  size_t rows = 0;
  for (size_t i = 0; i < joint_.members.size(); ++i) {
    const Pushed& before = joint_.members[i];
    const Pushed& next = update.members[i];
    rows += before.hashes.size();
    const bool follows = before.hashes.data() + before.hashes.size() == next.hashes.data();
    if (before.weight != next.weight || !SameOwner(before.owner, next.owner) || !follows) return false;
  }
  const size_t row_bytes = sizeof(float) * static_cast<size_t>(tables_[joint_.table].spec.dimension());
  if (joint_.members.size() > 1 && rows * row_bytes >= kMergedBytes) return false;
  for (size_t i = 0; i < joint_.members.size(); ++i) {
    absl::Span<const uint64_t>& hashes = joint_.members[i].hashes;
    hashes = absl::MakeConstSpan(hashes.data(), hashes.size() + update.members[i].hashes.size());
  }
  return true;
}

absl::Status TableStore::Apply(const ChunkRules::Update& update) {
  const UpdateMix mix = MixContributions(update, {});
  if (!mix.has_effect) return absl::OkStatus();
  Joint one = {.table = shards_.at(update.chunk).table,
               .header = mix.parts.front().contribution->header,
               .learning_rate_scale = update.learning_rate_scale,
               .share_with_examples = mix.share_with_examples};
  one.members.reserve(mix.parts.size());
  for (const UpdateMix::Part& part : mix.parts) {
    const std::shared_ptr<const EncodedGradient>& gradient = part.contribution->gradient;
    // ReadTable has made it.
    const auto& rows = static_cast<const RowGradient&>(*gradient);
    one.members.push_back(
        {.hashes = rows.hashes, .rows = rows.rows, .weight = static_cast<float>(part.weight), .owner = gradient});
  }
  if (Join(one)) return absl::OkStatus();
  const absl::Status finished = Finish();
  joint_ = std::move(one);
  return finished;
}

absl::Status TableStore::Finish() {
  const Joint joint = std::exchange(joint_, {});
  std::vector<Pushed> members;
  for (const Pushed& member : joint.members) {
    if (!member.hashes.empty()) members.push_back(member);
  }
  if (members.empty()) return absl::OkStatus();
  if (RUBATO_MUTANT(kMeanOfPushers)) {
    float all = 0;
    for (const Pushed& member : members) all += member.weight;
    for (Pushed& member : members) member.weight /= all;
  }
  const OneTable& table = tables_[joint.table];
  Pushed merged = members[0];
  if (members.size() > 1) {
    Merge(table.spec.dimension(), std::move(members));
    merged = {.hashes = hashes_, .rows = gradients_.data(), .weight = 1, .owner = nullptr};
  }
  const absl::Status applied = table.rows->ApplyHashes(RuleOf(joint), merged.hashes, merged.rows, merged.weight);
  if (applied.ok()) {
    gradients_taken_ += static_cast<int64_t>(merged.hashes.size());
    return applied;
  }
  return Annotate(applied, absl::StrCat("memory_bytes of model.tables is ", table.spec.config.memory_bytes(), ", for ",
                                        config_.cluster().partitions_per_server(), " partitions"));
}

void TableStore::Merge(int64_t dimension, std::vector<Pushed> members) {
  hashes_.clear();
  size_t most = 0;
  for (const Pushed& member : members) most += member.hashes.size();
  // It never shrinks, as growing again would fill it with zeros.
  gradients_.resize(std::max(gradients_.size(), most * static_cast<size_t>(dimension)));
  for (float* sum = gradients_.data(); !members.empty(); sum += dimension) {
    uint64_t lowest = UINT64_MAX;
    for (const Pushed& member : members) lowest = std::min(lowest, member.hashes.front());
    hashes_.push_back(lowest);
    bool first = true, ended = false;
    for (Pushed& member : members) {
      if (member.hashes.front() != lowest) continue;
      // A key of one member gets the bits that it has where nothing is merged: -0 stays that.
      for (int64_t i = 0; i < dimension; ++i) {
        const float gradient = member.weight * member.rows[i];
        sum[i] = first ? gradient : sum[i] + gradient;
      }
      member.hashes.remove_prefix(1);
      ended |= member.hashes.empty();
      const bool is_other = !std::exchange(first, false);
      if (RUBATO_MUTANT(kMissingKeyShifts) && is_other) continue;
      member.rows += dimension;
    }
    if (ended) std::erase_if(members, [](const Pushed& member) { return member.hashes.empty(); });
  }
}

std::shared_ptr<ShardSnapshot> TableStore::Keep(uint32_t chunk) const {
  const Shard& shard = shards_.at(chunk);
  const OneTable& table = tables_[shard.table];
  const v1::TableConfig& config = table.spec.config;
  const int row_floats = table.rows->row_floats();
  auto keys = std::make_shared<std::vector<uint64_t>>();
  auto rows = std::make_shared<std::vector<float>>();
  const TableShard part = {shard.shard, config.shards()};
  const auto count = static_cast<size_t>(table.rows->rows_of(part));
  keys->reserve(count);
  rows->reserve(count * static_cast<size_t>(row_floats));
  table.rows->VisitRows(part, [&](uint64_t key, absl::Span<const float> values, uint32_t step) {
    keys->push_back(key);
    rows->insert(rows->end(), values.begin(), values.end());
    if (RUBATO_MUTANT(kTornRows)) std::fill(rows->end() - (row_floats - config.dimension()), rows->end(), 0.0f);
    if (table.rows->removes()) rows->push_back(absl::bit_cast<float>(step));
  });
  auto snapshot = std::make_shared<ShardSnapshot>();
  v1::ShardRecord& record = snapshot->record;
  record.set_chunk(chunk);
  record.set_table(config.name());
  record.set_shard(shard.shard);
  record.set_shards(config.shards());
  record.set_algorithm(config.algorithm());
  record.set_dimension(static_cast<uint32_t>(config.dimension()));
  record.set_row_floats(static_cast<uint32_t>(row_floats));
  record.set_rows(static_cast<int64_t>(keys->size()));
  snapshot->push_counts = table.rows->PushCounts(part);
  record.set_push_counts_bytes(sizeof(uint64_t) * snapshot->push_counts.size());
  snapshot->keys = std::move(keys);
  snapshot->rows = std::move(rows);
  return snapshot;
}

void TableStore::BeginRestore(CheckpointRestorer* restorer) {
  for (const auto& [chunk, shard] : shards_) {
    const OneTable& table = tables_[shard.table];
    const v1::TableConfig& config = table.spec.config;
    restorer->AddShard(
        {.table = config.name(),
         .shard = shard.shard,
         .shards = config.shards(),
         .algorithm = config.algorithm(),
         .dimension = static_cast<uint32_t>(config.dimension()),
         .row_floats = static_cast<uint32_t>(table.rows->row_floats()),
         .restore = [this, number = chunk](const CheckpointShard& kept) { return Restore(number, kept); }});
  }
}

absl::Status TableStore::Restore(uint32_t chunk, const CheckpointShard& kept) {
  Shard& shard = shards_.at(chunk);
  const OneTable& table = tables_[shard.table];
  shard.restored_version = kept.record.version();
  if (RUBATO_MUTANT(kRestoresOneShard) && table.rows->rows() > 0) return absl::OkStatus();
  const TableShard part = {shard.shard, table.spec.config.shards()};
  RUBATO_RETURN_IF_ERROR(table.rows->RestorePushCounts(part, kept.push_counts));
  return table.rows->Restore(part, kept.keys, kept.rows.data());
}

size_t TableStore::EncodedBytes(int table, size_t rows) const {
  const TableSpec& spec = tables_[table].spec;
  return rows * static_cast<size_t>(MaxEncodedBytes({spec.config.pull()}, spec.dimension()));
}

void TableStore::LookupEncoded(int table, absl::Span<const uint64_t> hashes, uint8_t* rows) {
  const TableSpec& spec = tables_[table].spec;
  const CodecSpec codec = {spec.config.pull()};
  if (!TraitsOf(codec.codec).lossy) {
    Lookup(table, hashes, reinterpret_cast<float*>(rows));
    return;
  }
  const auto dimension = static_cast<size_t>(spec.dimension());
  const size_t together = std::max<size_t>(1, kEncodedTogether / dimension);
  encoded_from_.resize(std::min(together, hashes.size()) * dimension);
  for (size_t begin = 0; begin < hashes.size(); begin += together) {
    const absl::Span<const uint64_t> some = hashes.subspan(begin, together);
    Lookup(table, some, encoded_from_.data());
    rows += Encode(codec, encoded_from_.data(), static_cast<int64_t>(some.size() * dimension), /*residual=*/nullptr,
                   /*seed=*/0, /*stream=*/0, rows);
  }
}

void TableStore::Lookup(int table, absl::Span<const uint64_t> hashes, float* rows) const {
  const OneTable& read = tables_[table];
  if (RUBATO_MUTANT(kLookupInserts)) {
    const std::vector<float> nothing(hashes.size() * read.spec.dimension());
    (void)read.rows->ApplyHashes(read.rule, hashes, nothing.data(), 0);
  }
  read.rows->LookupHashes(hashes, rows);
}

TableStore::Counts TableStore::counts() const {
  Counts counts;
  for (const OneTable& table : tables_) {
    if (table.rows == nullptr) continue;
    counts.rows += table.rows->rows();
    counts.removed += table.rows->removed();
    counts.not_admitted += table.rows->not_admitted();
    counts.memory_bytes += table.rows->memory_bytes();
  }
  counts.applied = gradients_taken_ - counts.not_admitted;
  return counts;
}

}  // namespace rubato::server
