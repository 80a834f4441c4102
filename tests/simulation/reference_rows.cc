#include "tests/simulation/reference_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "common/random.h"
#include "common/table_keys.h"
#include "tests/simulation/sim_push.h"

namespace rubato::simulation {
namespace {

// What one push brings of a shard's rows: of each key the sum over its examples.
Rows GradientsOf(const Scenario& scenario, uint32_t chunk, const v1::UpdateRecord& record) {
  const PushId push(record.incarnation(), record.step());
  Rows sums;
  for (int64_t example = 0; example < static_cast<int64_t>(record.examples()); ++example) {
    for (int64_t place = 0; place < kKeysPerExample; ++place) {
      const uint64_t key = KeyOf(push, example, place);
      if (ShardChunkOf(scenario, key) != chunk) continue;
      std::vector<float>& sum = sums[key];
      sum.resize(kRowDimension);
      for (int64_t i = 0; i < kRowDimension; ++i) sum[i] += RowGradientOf(push, example, place, i);
    }
  }
  return sums;
}

// A weight as bf16 keeps it: `more` 65536ths of the distance to the next one away from 0 are rounded up.
float Bf16(float weight, uint32_t more) {
  return std::bit_cast<float>((std::bit_cast<uint32_t>(weight) + more) & 0xffff0000u);
}

float NearestBf16(float weight) {
  const bool is_odd = (std::bit_cast<uint32_t>(weight) >> 16) % 2 == 1;
  return Bf16(weight, is_odd ? 0x8000 : 0x7fff);
}

// What the i-th weight of a row is rounded up by in a step.
uint32_t Noise(uint64_t hash, uint32_t step, int64_t i) {
  uint32_t x = static_cast<uint32_t>(hash >> 16) + 2246822507u * step + 2654435769u * static_cast<uint32_t>(i);
  x = (x ^ x >> 16) * 2146121005u;
  x = (x ^ x >> 15) * 2221713035u;
  return x >> 16;
}

void UpdateRow(const v1::TableConfig& table, float learning_rate, const std::vector<float>& gradient, uint64_t hash,
               uint32_t step, std::vector<float>* row) {
  const bool adapts = table.algorithm() == v1::TableConfig::ADAGRAD;
  row->resize(adapts ? 2 * kRowDimension : kRowDimension);
  for (int64_t i = 0; i < kRowDimension; ++i) {
    float change = learning_rate * gradient[i];
    if (adapts) {
      float& squares = (*row)[kRowDimension + i];
      squares += gradient[i] * gradient[i];
      change /= std::sqrt(squares) + static_cast<float>(table.epsilon());
    }
    float& weight = (*row)[i];
    weight -= change;
    if (table.precision() == v1::TableConfig::BF16) weight = Bf16(weight, Noise(hash, step, i));
  }
}

uint32_t StepOf(const std::vector<float>& row) { return std::bit_cast<uint32_t>(row.back()); }

// Rows are removed in each of 256 parts of the hashes by itself, when one of the part's rows is updated: those that
// have expired, in a later step than any before (with so few steps until then every step is looked at), and those that
// are too many, but for the newest and of equally old ones those with the lowest hashes.
class Removal {
 public:
  Removal(const Scenario& scenario, uint32_t step, const Rows& rows)
      : hash_(HashOfTable(scenario.seed, 0)),
        after_(scenario.rows_expire_after),
        most_(scenario.most_rows / 256),
        step_(step) {
    for (const auto& [key, row] : rows) {
      if (removes()) steps_[PartOf(key)] = std::max(steps_[PartOf(key)], StepOf(row));
    }
  }

  // The row's last entry is not there yet.
  void Note(uint64_t key, std::vector<float>* row) {
    if (!removes()) return;
    row->push_back(std::bit_cast<float>(std::max(steps_[PartOf(key)], step_)));
    updated_.insert(PartOf(key));
  }

  // After all updates of the step.
  void Remove(Rows* rows, RowsUpdate* update) const {
    const Rows before = *rows;
    std::map<uint64_t, std::set<Age>> parts;
    for (const auto& [key, row] : before) {
      if (updated_.contains(PartOf(key))) parts[PartOf(key)].insert(AgeOf(key, row));
    }
    for (const auto& [key, row] : before) {
      const auto part = parts.find(PartOf(key));
      if (part == parts.end()) continue;
      const bool expired = after_ > 0 && step_ > steps_.at(part->first) && StepOf(row) + after_ < step_;
      const bool too_many = most_ > 0 && part->second.size() > most_ && IsOver(part->second, AgeOf(key, row));
      update->has_expired |= expired;
      update->has_row_too_many |= too_many;
      if (expired || too_many) rows->erase(key);
    }
  }

 private:
  // The lowest is the newest.
  using Age = std::pair<uint32_t, uint64_t>;

  bool removes() const { return after_ > 0 || most_ > 0; }
  uint64_t PartOf(uint64_t key) const { return hash_.Of(key) >> 56; }
  Age AgeOf(uint64_t key, const std::vector<float>& row) const { return {UINT32_MAX - StepOf(row), hash_.Of(key)}; }
  // A sixteenth more goes than must.
  bool IsOver(const std::set<Age>& ages, const Age& age) const {
    return std::distance(ages.begin(), ages.find(age)) >= static_cast<ptrdiff_t>(most_ - most_ / 16);
  }

  const KeyHash hash_;
  const uint32_t after_;
  const size_t most_;
  const uint32_t step_;
  // By part, before this step.
  std::map<uint64_t, uint32_t> steps_;
  std::set<uint64_t> updated_;
};

// Pushes of keys that have no row are counted in each of 256 parts of the hashes by itself, in 64 counters, of which a
// key has four. The least of them is how often it was pushed; lower ones become as much, and the others stay. With
// every eighth push all are halved.
class Admission {
 public:
  Admission(const Scenario& scenario, PushCounts* counts) : after_(scenario.rows_admit_after), counts_(counts) {}

  // Whether the key with this hash, which has no row, gets one with this push.
  bool Admits(uint64_t hash) {
    if (after_ <= 1) return true;
    std::vector<uint32_t>& part = (*counts_)[hash >> 56];
    part.resize(1 + kCounters);
    std::set<size_t> own;
    for (int i = 0; i < 4; ++i) own.insert(1 + ((hash * 0x9e3779b97f4a7c15) >> (6 * i) ^ hash >> (6 * i)) % kCounters);
    uint32_t count = UINT32_MAX;
    for (const size_t place : own) count = std::min(count, part[place] + 1);
    for (const size_t place : own) part[place] = std::max(part[place], count);
    if (++part[0] == 8) {
      part[0] = 0;
      for (uint32_t& counter : part) counter /= 2;
    }
    const bool is_empty = std::all_of(part.begin(), part.end(), [](uint32_t number) { return number == 0; });
    if (is_empty) counts_->erase(hash >> 56);
    return count >= after_;
  }

 private:
  static constexpr size_t kCounters = kAdmissionCounters / 256;

  const uint32_t after_;
  PushCounts* const counts_;
};

}  // namespace

uint32_t ShardChunkOf(const Scenario& scenario, uint64_t key) {
  if (scenario.shards == 1) return scenario.chunks;
  const uint64_t hash = HashOfTable(scenario.seed, 0).Of(key);
  return scenario.chunks + static_cast<uint32_t>(hash >> (64 - std::countr_zero(scenario.shards)));
}

std::vector<float> InitialRow(const Scenario& scenario, uint64_t key) {
  const double bound = MakeTable(scenario).initial_bound();
  std::vector<float> row;
  for (int64_t i = 0; i < kRowDimension; ++i) {
    const uint32_t word = PhiloxBlock(SeedOfTable(scenario.seed, 0), key, static_cast<uint64_t>(i / 4))[i % 4];
    const auto weight = static_cast<float>(bound * ((word >> 8) / std::pow(2.0, 23) - 1));
    row.push_back(scenario.rows_in_bf16 ? NearestBf16(weight) : weight);
  }
  return row;
}

RowsUpdate UpdateRowsByReference(const Scenario& scenario, uint32_t chunk, double learning_rate_scale,
                                 std::vector<v1::UpdateRecord> contributions, Rows* rows, PushCounts* counts) {
  std::sort(contributions.begin(), contributions.end(),
            [](const v1::UpdateRecord& a, const v1::UpdateRecord& b) { return a.worker() < b.worker(); });
  uint64_t examples = 0;
  size_t batches = 0;
  for (const v1::UpdateRecord& record : contributions) {
    examples += record.examples();
    batches += record.examples() > 0 ? 1 : 0;
  }
  RowsUpdate update;
  if (examples == 0) return update;
  Rows means;
  for (const v1::UpdateRecord& record : contributions) {
    const auto weight = static_cast<float>(static_cast<double>(record.examples()) / static_cast<double>(examples));
    for (const auto& [key, sum] : GradientsOf(scenario, chunk, record)) {
      std::vector<float>& mean = means[key];
      update.has_key_of_several |= !mean.empty();
      mean.resize(kRowDimension);
      for (int64_t i = 0; i < kRowDimension; ++i) mean[i] += weight * sum[i];
    }
  }
  v1::TableConfig table = MakeTable(scenario);
  table.set_epsilon(1e-8);  // The default.
  // Of an update of fewer batches than were to be: in proportion, or with AdaGrad by the root.
  const double share = static_cast<double>(batches) / static_cast<double>(contributions.size());
  const double factor = table.algorithm() == v1::TableConfig::SGD ? share : std::sqrt(share);
  const auto learning_rate = static_cast<float>(table.learning_rate() * learning_rate_scale * factor);
  const KeyHash hash = HashOfTable(scenario.seed, 0);
  const auto step = static_cast<uint32_t>(contributions.front().step());
  Removal removal(scenario, step, *rows);
  Admission admission(scenario, counts);
  std::map<uint64_t, uint64_t> keys;  // By hash, the order in which they are counted.
  for (const auto& [key, mean] : means) keys[hash.Of(key)] = key;
  for (const auto& [hashed, key] : keys) {
    auto row = rows->find(key);
    if (row == rows->end()) {
      if (!admission.Admits(hashed)) {
        update.has_key_without_row = true;
        continue;
      }
      update.has_admitted |= scenario.rows_admit_after > 1;
      row = rows->emplace(key, InitialRow(scenario, key)).first;
    }
    UpdateRow(table, learning_rate, means[key], hashed, step, &row->second);
    removal.Note(key, &row->second);
  }
  removal.Remove(rows, &update);
  return update;
}

}  // namespace rubato::simulation
