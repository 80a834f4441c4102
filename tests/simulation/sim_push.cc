#include "tests/simulation/sim_push.h"

#include "common/random.h"

namespace rubato::simulation {
namespace {

void AddGroup(uint32_t group, double learning_rate, double weight_decay,
              google::protobuf::RepeatedPtrField<v1::GroupHyperparameters>* groups) {
  v1::GroupHyperparameters* added = groups->Add();
  added->set_group(group);
  added->set_learning_rate(learning_rate);
  added->set_weight_decay(weight_decay);
}

constexpr uint64_t kPushedKeys = 40, kReadKeys = 60;

// Keys by how often they are pushed.
uint64_t KeyAt(uint64_t rank) { return rank == 1 ? UINT64_MAX : rank; }

// By a power law.
uint64_t PushedKey(uint64_t drawn) {
  const double uniform = static_cast<double>(drawn % 1000) / 1000;
  return KeyAt(static_cast<uint64_t>(static_cast<double>(kPushedKeys) * uniform * uniform * uniform));
}

}  // namespace

v1::OptimizerConfig MakeOptimizer(const Scenario& scenario) {
  v1::OptimizerConfig optimizer;
  optimizer.set_algorithm(scenario.mean ? v1::OptimizerConfig::MEAN : v1::OptimizerConfig::SGD);
  optimizer.set_learning_rate(0.05);
  return optimizer;
}

double GradientOf(const PushId& push, uint32_t chunk) {
  const uint64_t drawn = StreamId("gradient", push.first, static_cast<uint64_t>(push.second) << 16 | chunk);
  return static_cast<double>(drawn % 2001) / 1000 - 1;
}

v1::TableConfig MakeTable(const Scenario& scenario) {
  v1::TableConfig table;
  table.set_name("rows");
  table.set_keys_per_example(kKeysPerExample);
  table.set_dimension(kRowDimension);
  table.set_algorithm(scenario.rows_by);
  table.set_learning_rate(0.25);
  table.set_initial_bound(0.5);
  table.set_shards(scenario.shards);
  table.set_memory_bytes(uint64_t{1} << 22);
  if (scenario.rows_in_bf16) table.set_precision(v1::TableConfig::BF16);
  table.set_admit_after(scenario.rows_admit_after);
  if (scenario.rows_admit_after > 1) table.set_admission_counters(kAdmissionCounters);
  table.set_expire_after_steps(scenario.rows_expire_after);
  table.set_most_rows(scenario.most_rows);
  return table;
}

uint64_t KeyOf(const PushId& push, int64_t example, int64_t place) {
  const auto at = static_cast<uint64_t>(push.second << 16 | example << 8 | place);
  return PushedKey(StreamId("key", push.first, at));
}

float RowGradientOf(const PushId& push, int64_t example, int64_t place, int64_t element) {
  const auto at = static_cast<uint64_t>(push.second << 24 | example << 16 | place << 8 | element);
  return static_cast<float>(StreamId("row gradient", push.first, at) % 2001) / 1000 - 1;
}

std::vector<uint64_t> KeysRead(const PushId& reader) {
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < 2 * kKeysPerExample; ++i) {
    const uint64_t drawn = StreamId("read key", reader.first, static_cast<uint64_t>(reader.second) << 8 | i);
    keys.push_back(i % 2 == 0 ? PushedKey(drawn) : KeyAt(drawn % kReadKeys));
  }
  return keys;
}

google::protobuf::RepeatedPtrField<v1::GroupHyperparameters> HyperparametersOf(const PushId& push) {
  const uint64_t drawn = StreamId("hyperparameters", push.first, static_cast<uint64_t>(push.second)) % 12;
  const double rate = 0.2 / static_cast<double>(1 + push.second % 7);
  google::protobuf::RepeatedPtrField<v1::GroupHyperparameters> groups;
  if (drawn == 0) return groups;
  const bool other_rate = drawn == 1, other_decay = drawn == 2;
  if (drawn != 3) AddGroup(0, other_rate ? rate / 2 : rate, other_decay ? 0.02 : 0.01, &groups);
  if (drawn != 4) AddGroup(1, other_rate ? rate : 2 * rate, other_decay ? 0.01 : 0, &groups);
  return groups;
}

}  // namespace rubato::simulation
