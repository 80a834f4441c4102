#include "tests/simulation/reference_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>

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

void UpdateRow(const v1::TableConfig& table, float learning_rate, const std::vector<float>& gradient,
               std::vector<float>* row) {
  const bool adapts = table.algorithm() == v1::TableConfig::ADAGRAD;
  row->resize(adapts ? 2 * kRowDimension : kRowDimension);
  for (int64_t i = 0; i < kRowDimension; ++i) {
    float step = learning_rate * gradient[i];
    if (adapts) {
      float& squares = (*row)[kRowDimension + i];
      squares += gradient[i] * gradient[i];
      step /= std::sqrt(squares) + static_cast<float>(table.epsilon());
    }
    (*row)[i] -= step;
  }
}

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
    row.push_back(static_cast<float>(bound * ((word >> 8) / std::pow(2.0, 23) - 1)));
  }
  return row;
}

bool UpdateRowsByReference(const Scenario& scenario, uint32_t chunk, double learning_rate_scale,
                           std::vector<v1::UpdateRecord> contributions, Rows* rows) {
  std::sort(contributions.begin(), contributions.end(),
            [](const v1::UpdateRecord& a, const v1::UpdateRecord& b) { return a.worker() < b.worker(); });
  uint64_t examples = 0;
  size_t batches = 0;
  for (const v1::UpdateRecord& record : contributions) {
    examples += record.examples();
    batches += record.examples() > 0 ? 1 : 0;
  }
  if (examples == 0) return false;
  bool several = false;
  Rows means;
  for (const v1::UpdateRecord& record : contributions) {
    const auto weight = static_cast<float>(static_cast<double>(record.examples()) / static_cast<double>(examples));
    for (const auto& [key, sum] : GradientsOf(scenario, chunk, record)) {
      std::vector<float>& mean = means[key];
      several |= !mean.empty();
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
  for (const auto& [key, mean] : means) {
    auto row = rows->find(key);
    if (row == rows->end()) row = rows->emplace(key, InitialRow(scenario, key)).first;
    UpdateRow(table, learning_rate, mean, &row->second);
  }
  return several;
}

}  // namespace rubato::simulation
