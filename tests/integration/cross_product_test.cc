// Every mode, optimizer, codec and transport, together: real clients and servers bring the weights to a target, and
// beside one of the optimizers rows of a table. The loss is half the squared distance to it, so a gradient is the
// distance.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/codec_traits.h"
#include "common/table_keys.h"
#include "tests/integration/in_process_cluster.h"

namespace rubato::worker {
namespace {

constexpr int kWorkers = 2;
constexpr int kSteps = 60;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

float Target(int tensor, size_t i) { return std::sin(static_cast<float>(i * 37 % 101) + static_cast<float>(tensor)); }

double Distance(const FakeModel& model) {
  double sum = 0;
  for (size_t tensor = 0; tensor < model.weights.size(); ++tensor) {
    for (size_t i = 0; i < model.weights[tensor].size(); ++i) {
      sum += std::pow(model.weights[tensor][i] - Target(static_cast<int>(tensor), i), 2);
    }
  }
  return std::sqrt(sum);
}

constexpr int kDimension = 4;

// A worker's keys in every step, in the order of their hashes; workers share some of them.
std::vector<uint64_t> KeysOf(const InProcessCluster& cluster, uint32_t worker) {
  const KeyHash hash = HashOfTable(cluster.seed(), 0);
  std::vector<uint64_t> hashes;
  for (uint64_t key = 3 * worker; key < 3 * worker + 6; ++key) hashes.push_back(hash.Of(key));
  std::sort(hashes.begin(), hashes.end());
  std::vector<uint64_t> keys;
  for (uint64_t one : hashes) keys.push_back(hash.KeyOf(one));
  return keys;
}

std::vector<float> RowGradients(const std::vector<uint64_t>& keys, const float* rows) {
  std::vector<float> gradients;
  for (uint64_t key : keys) {
    for (int i = 0; i < kDimension; ++i) gradients.push_back(*rows++ - Target(9, kDimension * key + i));
  }
  return gradients;
}

double Length(const std::vector<float>& gradients) {
  double sum = 0;
  for (float gradient : gradients) sum += std::pow(gradient, 2);
  return std::sqrt(sum);
}

struct Outcome {
  double before = 0;
  double after = 0;
  double rows_before = 0;
  double rows_after = 0;
};

// Whether the step that is asked for has begun; false: it was moved. `read` is called while its rows are there; it is
// empty if there is no table.
bool Begin(PsClient* client, int tensors, const std::function<void()>& read) {
  for (int tensor = 0; tensor < tensors; ++tensor) {
    absl::StatusOr<bool> there = client->AwaitTensor(tensor);
    EXPECT_TRUE(there.ok()) << there.status();
    if (!there.ok() || !*there) return false;
  }
  if (read) {
    absl::StatusOr<bool> rows = client->AwaitRows(0);
    EXPECT_TRUE(rows.ok()) << rows.status();
    if (!rows.ok() || !*rows) return false;
    read();
  }
  Parameters::Step step;
  absl::StatusOr<bool> begun = client->BeginStep(&step);
  EXPECT_TRUE(begun.ok()) << begun.status();
  return begun.ok() && *begun;
}

void Train(InProcessCluster* cluster, uint32_t worker, Outcome* outcome) {
  FakeModel model = cluster->MakeModel();
  PsClient client(cluster->ClientOptions(worker, &model));
  client.Start(cluster->plan());
  const int tensors = static_cast<int>(model.weights.size());
  const std::vector<uint64_t> keys = KeysOf(*cluster, worker);
  std::vector<float> row_gradients;
  std::function<void()> read;
  if (!cluster->model().tables.empty()) {
    read = [&] { row_gradients = RowGradients(keys, client.rows(0)); };
    client.AskRows(0, keys);
  }
  for (int done = 0; done < kSteps; ++done) {
    ASSERT_TRUE(Begin(&client, tensors, read));
    outcome->after = Distance(model);
    outcome->rows_after = Length(row_gradients);
    if (done == 0) outcome->before = outcome->after;
    if (done == 0) outcome->rows_before = outcome->rows_after;
    for (int tensor = tensors - 1; tensor >= 0; --tensor) {
      for (size_t i = 0; i < model.weights[tensor].size(); ++i) {
        model.gradients[tensor]->data()[i] = model.weights[tensor][i] - Target(tensor, i);
      }
      client.PushTensor(tensor, {.examples = 8});
    }
    if (!read) continue;
    client.AskRows(0, keys);
    client.PushRows(0, keys, row_gradients, {.examples = 8});
  }
  EXPECT_TRUE(client.AwaitAcknowledgements().ok());
}

struct Rule {
  v1::OptimizerConfig::Algorithm algorithm;
  double learning_rate;
};

v1::OptimizerConfig Optimizer(const Rule& rule) {
  v1::OptimizerConfig optimizer;
  optimizer.set_algorithm(rule.algorithm);
  optimizer.set_learning_rate(rule.learning_rate);
  optimizer.set_momentum(0.5);
  optimizer.set_beta1(0.9);
  optimizer.set_beta2(0.99);
  optimizer.set_rho(0.9);
  optimizer.set_epsilon(1e-6);
  optimizer.set_initial_accumulator(0.1);
  optimizer.set_trust_coefficient(0.5);
  return optimizer;
}

// The rates are for kSteps steps of a gradient that is as long as the way to go.
v1::TableConfig Table(size_t turn, v1::Codec push, v1::Codec pull) {
  struct RowRule {
    v1::TableConfig::Algorithm algorithm;
    double learning_rate;
  };
  constexpr RowRule kRules[] = {{v1::TableConfig::SGD, 0.2},
                                {v1::TableConfig::ADAGRAD, 0.3},
                                {v1::TableConfig::ROW_WISE_ADAGRAD, 0.3},
                                {v1::TableConfig::LAZY_ADAM, 0.05},
                                {v1::TableConfig::FTRL, 0.5}};
  const RowRule& rule = kRules[turn % std::size(kRules)];
  v1::TableConfig table;
  table.set_name("users");
  table.set_dimension(kDimension);
  table.set_algorithm(rule.algorithm);
  table.set_learning_rate(rule.learning_rate);
  table.set_shards(8);
  table.set_precision(turn % 2 == 0 ? v1::TableConfig::FLOAT32 : v1::TableConfig::BF16);
  table.set_push(push == v1::BF16 ? push : v1::NONE);
  table.set_pull(pull == v1::BF16 ? pull : v1::NONE);
  return table;
}

using Combination = std::tuple<v1::Mode, bool, v1::Codec, v1::Codec>;

class CrossProductTest : public testing::TestWithParam<Combination> {};

TEST_P(CrossProductTest, EveryOptimizerReachesTheTarget) {
  const auto [mode, shared_memory, push, pull] = GetParam();
  const Rule rules[] = {
      {v1::OptimizerConfig::SGD, 0.1},     {v1::OptimizerConfig::MOMENTUM, 0.05}, {v1::OptimizerConfig::NESTEROV, 0.05},
      {v1::OptimizerConfig::ADAGRAD, 0.3}, {v1::OptimizerConfig::RMSPROP, 0.03},  {v1::OptimizerConfig::ADAM, 0.05},
      {v1::OptimizerConfig::ADAMW, 0.05},  {v1::OptimizerConfig::LARS, 0.1},      {v1::OptimizerConfig::LAMB, 0.05}};
  // A sanitizer takes its time: there each combination has one of the optimizers.
  const size_t turn = mode * 5 + push * 3 + pull + shared_memory;
  for (size_t i = 0; i < std::size(rules); ++i) {
    if (kSanitized && i != turn % std::size(rules)) continue;
    const Rule& rule = rules[i];
    SCOPED_TRACE(v1::OptimizerConfig::Algorithm_Name(rule.algorithm));
    InProcessCluster::Options options;
    options.servers = 2;
    options.workers = kWorkers;
    options.mode = mode;
    options.staleness_bound = mode == v1::SSP ? 2 : 0;
    options.shared_memory = shared_memory;
    options.optimizer = Optimizer(rule);
    // Of a gradient that has few of its elements LAMB makes a step as long as of one that has all.
    const bool is_sparse_lamb = rule.algorithm == v1::OptimizerConfig::LAMB && HasResidual(push);
    if (is_sparse_lamb) options.optimizer.set_learning_rate(0.03);
    options.compression.mutable_push()->set_codec(push);
    if (push == v1::TOP_K) options.compression.mutable_push()->set_fraction(0.2);
    options.compression.mutable_pull()->set_codec(pull);
    // Beside one of the optimizers, which rows have nothing to do with.
    const bool has_table = i == turn % std::size(rules);
    if (has_table) options.tables = {Table(turn, push, pull)};
    InProcessCluster cluster(options);
    std::vector<Outcome> outcomes(kWorkers);
    std::vector<std::thread> threads;
    for (int worker = 0; worker < kWorkers; ++worker) {
      threads.emplace_back([&, worker] { Train(&cluster, worker, &outcomes[worker]); });
    }
    for (std::thread& thread : threads) thread.join();
    // A worker that begins late, when nobody waits for it, finds the weights half way there.
    const double before = std::max(outcomes[0].before, outcomes[1].before);
    EXPECT_GT(before, 10);
    const double wanted = is_sparse_lamb ? 0.5 : 0.2;
    for (const Outcome& outcome : outcomes) EXPECT_LT(outcome.after, wanted * before);
    if (!has_table) continue;
    const double rows_before = std::max(outcomes[0].rows_before, outcomes[1].rows_before);
    EXPECT_GT(rows_before, 2);
    for (const Outcome& outcome : outcomes) EXPECT_LT(outcome.rows_after, 0.3 * rows_before);
  }
}

INSTANTIATE_TEST_SUITE_P(All, CrossProductTest,
                         testing::Combine(testing::Values(v1::SYNC, v1::SSP, v1::ASYNC), testing::Bool(),
                                          testing::Values(v1::NONE, v1::BF16, v1::FP16, v1::INT8, v1::TOP_K,
                                                          v1::ONE_BIT),
                                          testing::Values(v1::NONE, v1::BF16, v1::FP16, v1::INT8)),
                         [](const auto& info) {
                           return absl::StrCat(v1::Mode_Name(std::get<0>(info.param)),
                                               std::get<1>(info.param) ? "SharedMemory" : "Tcp", "Push",
                                               v1::Codec_Name(std::get<2>(info.param)), "Pull",
                                               v1::Codec_Name(std::get<3>(info.param)));
                         });

}  // namespace
}  // namespace rubato::worker
