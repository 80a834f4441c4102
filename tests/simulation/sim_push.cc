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
