// Rows of tables between real clients and real servers: the same bits on any number of servers, and every push applied
// once, whatever breaks and whichever mode it is.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/random.h"
#include "common/table_keys.h"
#include "tests/integration/in_process_cluster.h"
#include "worker/ps_client/row_puller.h"

namespace rubato::worker {
namespace {

constexpr int kWorkers = 3;
constexpr int kSteps = 20;
constexpr uint64_t kSeed = 3;  // The cluster's.
constexpr int kDimension = 5;

v1::TableConfig Config(v1::TableConfig::Algorithm algorithm, uint32_t shards) {
  v1::TableConfig table;
  table.set_name("users");
  table.set_dimension(kDimension);
  table.set_algorithm(algorithm);
  table.set_learning_rate(0.25);
  table.set_shards(shards);
  return table;
}

// Keys of a worker's step, few of which are new: some twice as likely as others, 0 and the last one among them.
std::vector<uint64_t> KeysOf(int worker, int64_t step, const KeyHash& hash) {
  Random random(kSeed, StreamId("test keys", static_cast<uint64_t>(worker), static_cast<uint64_t>(step)));
  std::map<uint64_t, uint64_t> by_hash;
  for (uint64_t i = random.Below(40); i > 0; --i) {
    const uint64_t key = random.Below(50) == 0 ? UINT64_MAX : random.Below(random.Below(2) == 0 ? 10 : 200);
    by_hash[hash.Of(key)] = key;
  }
  std::vector<uint64_t> keys;
  for (const auto& [unused, key] : by_hash) keys.push_back(key);
  return keys;
}

float GradientOf(int worker, int64_t step, uint64_t key, int element) {
  return std::sin(static_cast<float>(worker * 7 + step * 3 + static_cast<int64_t>(key % 1000) + element));
}

class Trainer {
 public:
  Trainer(InProcessCluster* cluster, uint32_t worker)
      : cluster_(cluster),
        worker_(worker),
        hash_(HashOfTable(kSeed, 0)),
        model_(cluster->MakeModel()),
        client_(cluster->ClientOptions(worker, &model_)) {}

  // `ahead`: the next step's keys are known when a step is pushed. `each` is called in every step with what was read.
  void Run(bool ahead,
           const std::function<void(int64_t step, const std::vector<uint64_t>& keys, const float* rows)>& each) {
    client_.Start(cluster_->plan());
    int64_t step = 0;
    int64_t asked = -1;
    while (step < kSteps) {
      const std::vector<uint64_t> keys = KeysOf(static_cast<int>(worker_), step, hash_);
      if (asked != step) client_.AskRows(0, keys);
      asked = step;
      if (!Begin(step, keys, each)) {
        client_.Restart();
        continue;
      }
      for (int tensor = static_cast<int>(model_.weights.size()) - 1; tensor >= 0; --tensor) {
        client_.PushTensor(tensor, {.examples = worker_ + 1});
      }
      if (ahead) {
        asked = step + 1;
        client_.AskRows(0, KeysOf(static_cast<int>(worker_), asked, hash_));
      }
      std::vector<float> gradients;
      for (uint64_t key : keys) {
        for (int i = 0; i < kDimension; ++i) gradients.push_back(gradient(step, key, i));
      }
      client_.PushRows(0, keys, gradients, {.examples = worker_ + 1});
      ++step;
    }
    EXPECT_TRUE(client_.AwaitAcknowledgements().ok());
  }

  // What is pushed; ones, if not set, of all elements.
  std::function<float(int64_t step, uint64_t key, int element)> gradient = [](int64_t, uint64_t, int) { return 1.0f; };

 private:
  bool Begin(int64_t step, const std::vector<uint64_t>& keys,
             const std::function<void(int64_t, const std::vector<uint64_t>&, const float*)>& each) {
    for (size_t tensor = 0; tensor < model_.weights.size(); ++tensor) {
      const absl::StatusOr<bool> there = client_.AwaitTensor(static_cast<int>(tensor));
      EXPECT_TRUE(there.ok()) << there.status();
      if (!there.ok() || !*there) return false;
    }
    const absl::StatusOr<bool> there = client_.AwaitRows(0);
    EXPECT_TRUE(there.ok()) << there.status();
    if (!there.ok() || !*there) return false;
    if (each) each(step, keys, client_.rows(0));
    Parameters::Step begun;
    const absl::StatusOr<bool> good = client_.BeginStep(&begun);
    EXPECT_TRUE(good.ok()) << good.status();
    return good.ok() && *good;
  }

  InProcessCluster* const cluster_;
  const uint32_t worker_;
  const KeyHash hash_;
  FakeModel model_;
  PsClient client_;
};

// Rows of all keys, as they are on the servers.
std::map<uint64_t, std::vector<float>> Rows(const InProcessCluster& cluster) {
  std::map<uint64_t, uint64_t> by_hash;
  const KeyHash hash = HashOfTable(kSeed, 0);
  for (uint64_t key = 0; key < 200; ++key) by_hash[hash.Of(key)] = key;
  by_hash[hash.Of(UINT64_MAX)] = UINT64_MAX;
  std::vector<uint64_t> keys;
  for (const auto& [unused, key] : by_hash) keys.push_back(key);
  std::vector<float> rows(keys.size() * kDimension);
  v1::TaskId evaluator;
  evaluator.set_role(v1::TaskId::EVALUATOR);
  evaluator.set_incarnation(9);
  RowPuller puller(cluster.job(), evaluator, nullptr, cluster.model(), kSeed);
  const absl::Status status = puller.Pull(0, keys, absl::Seconds(10), rows.data());
  EXPECT_TRUE(status.ok()) << status;
  std::map<uint64_t, std::vector<float>> result;
  for (size_t i = 0; i < keys.size(); ++i) {
    result[keys[i]].assign(rows.begin() + i * kDimension, rows.begin() + (i + 1) * kDimension);
  }
  return result;
}

// `each` is called by every worker when it has a step's rows.
void TrainAll(
    InProcessCluster* cluster, bool ahead,
    const std::function<float(int worker, int64_t step, uint64_t key, int element)>& gradient = {},
    const std::function<void(int worker, int64_t step)>& each = [](int, int64_t) {}) {
  std::vector<std::thread> threads;
  for (int worker = 0; worker < kWorkers; ++worker) {
    threads.emplace_back([=, &each] {
      Trainer trainer(cluster, static_cast<uint32_t>(worker));
      if (gradient) {
        trainer.gradient = [=](int64_t step, uint64_t key, int i) { return gradient(worker, step, key, i); };
      }
      trainer.Run(ahead, [&](int64_t step, const std::vector<uint64_t>&, const float*) { each(worker, step); });
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// What SYNC makes of the rows, after each step.
class Reference {
 public:
  Reference(v1::TableConfig::Algorithm algorithm, std::map<uint64_t, std::vector<float>> initial)
      : algorithm_(algorithm), rows_(std::move(initial)) {}

  void Step(int64_t step) {
    const KeyHash hash = HashOfTable(kSeed, 0);
    std::map<uint64_t, std::vector<float>> sums;
    constexpr int kExamples = kWorkers * (kWorkers + 1) / 2;
    for (int worker = 0; worker < kWorkers; ++worker) {
      const auto weight = static_cast<float>(static_cast<double>(worker + 1) / kExamples);
      for (uint64_t key : KeysOf(worker, step, hash)) {
        std::vector<float>& sum = sums[key];
        sum.resize(kDimension);
        for (int i = 0; i < kDimension; ++i) sum[i] += weight * GradientOf(worker, step, key, i);
      }
    }
    for (const auto& [key, sum] : sums) {
      std::vector<float>& squares = squares_[key];
      squares.resize(kDimension);
      for (int i = 0; i < kDimension; ++i) {
        if (algorithm_ == v1::TableConfig::SGD) {
          rows_[key][i] -= 0.25f * sum[i];
        } else {
          squares[i] += sum[i] * sum[i];
          rows_[key][i] -= 0.25f * sum[i] / (std::sqrt(squares[i]) + 1e-8f);
        }
      }
    }
  }
  const std::map<uint64_t, std::vector<float>>& rows() const { return rows_; }

 private:
  const v1::TableConfig::Algorithm algorithm_;
  std::map<uint64_t, std::vector<float>> rows_, squares_;
};

// Algorithm, servers, whether the next keys are known, and whether memory is shared.
using Case = std::tuple<v1::TableConfig::Algorithm, int, bool, bool>;

class TablesTest : public testing::TestWithParam<Case> {};

TEST_P(TablesTest, SyncIsTheReferenceBitByBit) {
  const auto [algorithm, servers, ahead, shared_memory] = GetParam();
  InProcessCluster cluster(
      {.servers = servers, .workers = kWorkers, .shared_memory = shared_memory, .tables = {Config(algorithm, 16)}});
  Reference reference(algorithm, Rows(cluster));
  TrainAll(&cluster, ahead, GradientOf);
  for (int64_t step = 0; step < kSteps; ++step) reference.Step(step);
  EXPECT_EQ(Rows(cluster), reference.rows());
}

INSTANTIATE_TEST_SUITE_P(Rows, TablesTest,
                         testing::Combine(testing::Values(v1::TableConfig::SGD, v1::TableConfig::ADAGRAD),
                                          testing::Values(1, 2, 3, 7), testing::Bool(), testing::Values(false)));
INSTANTIATE_TEST_SUITE_P(RowsInSharedMemory, TablesTest,
                         testing::Combine(testing::Values(v1::TableConfig::ADAGRAD), testing::Values(1, 3),
                                          testing::Bool(), testing::Values(true)));

class TableBreaksTest : public testing::TestWithParam<bool> {};

TEST_P(TableBreaksTest, SyncIsTheReferenceThoughConnectionsBreak) {
  InProcessCluster cluster({.servers = 2,
                            .workers = kWorkers,
                            .shared_memory = GetParam(),
                            .tables = {Config(v1::TableConfig::ADAGRAD, 8)}});
  Reference reference(v1::TableConfig::ADAGRAD, Rows(cluster));
  // One worker is to begin a step, the others are on their way to it.
  TrainAll(&cluster, /*ahead=*/true, GradientOf, [&cluster](int worker, int64_t step) {
    if (worker == step % kWorkers) cluster.BreakConnections(static_cast<int>(step % 2));
  });
  for (int64_t step = 0; step < kSteps; ++step) reference.Step(step);
  EXPECT_EQ(Rows(cluster), reference.rows());
}

INSTANTIATE_TEST_SUITE_P(SharedMemory, TableBreaksTest, testing::Bool());

// In SYNC a step reads the rows of all steps before it, and of no other.
TEST(TableStepsTest, StepsOfSyncReadWhatTheyMay) {
  InProcessCluster cluster({.servers = 2, .workers = kWorkers, .tables = {Config(v1::TableConfig::SGD, 8)}});
  std::vector<std::map<uint64_t, std::vector<float>>> expected;
  Reference reference(v1::TableConfig::SGD, Rows(cluster));
  for (int64_t step = 0; step < kSteps; ++step) {
    expected.push_back(reference.rows());
    reference.Step(step);
  }
  std::vector<std::thread> threads;
  for (int worker = 0; worker < kWorkers; ++worker) {
    threads.emplace_back([&, worker] {
      Trainer trainer(&cluster, static_cast<uint32_t>(worker));
      trainer.gradient = [worker](int64_t step, uint64_t key, int i) { return GradientOf(worker, step, key, i); };
      trainer.Run(worker % 2 == 0, [&](int64_t step, const std::vector<uint64_t>& keys, const float* rows) {
        for (size_t i = 0; i < keys.size(); ++i) {
          const std::vector<float> row(rows + i * kDimension, rows + (i + 1) * kDimension);
          ASSERT_EQ(row, expected[step].at(keys[i])) << "step " << step << ", key " << keys[i];
        }
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Of each key as many pushes as workers have made, no more and no less: each moves a weight by exactly 1/4.
void ExpectEachPushOnce(const InProcessCluster& cluster, const std::map<uint64_t, std::vector<float>>& before) {
  std::map<uint64_t, int> pushes;
  const KeyHash hash = HashOfTable(kSeed, 0);
  for (int worker = 0; worker < kWorkers; ++worker) {
    for (int64_t step = 0; step < kSteps; ++step) {
      for (uint64_t key : KeysOf(worker, step, hash)) ++pushes[key];
    }
  }
  for (const auto& [key, row] : Rows(cluster)) {
    EXPECT_NEAR(before.at(key)[0] - row[0], 0.25 * pushes[key], 1e-3) << "key " << key;
  }
}

class TableModesTest : public testing::TestWithParam<std::tuple<v1::Mode, bool>> {};

TEST_P(TableModesTest, EachPushCountsOnceThoughConnectionsBreak) {
  const auto [mode, shared_memory] = GetParam();
  InProcessCluster cluster({.servers = 2,
                            .workers = kWorkers,
                            .mode = mode,
                            .staleness_bound = mode == v1::SSP ? 2 : 0,
                            .shared_memory = shared_memory,
                            .tables = {Config(v1::TableConfig::SGD, 8)}});
  const auto before = Rows(cluster);
  std::atomic<bool> done = false;
  std::thread breaks([&] {
    // Later and later, so that on a busy machine they last long enough for something to come of them.
    for (int i = 0; !done; ++i) {
      cluster.BreakConnections(i % 2);
      absl::SleepFor(absl::Milliseconds(7 + i));
    }
  });
  TrainAll(&cluster, /*ahead=*/true);
  done = true;
  breaks.join();
  ExpectEachPushOnce(cluster, before);
}

INSTANTIATE_TEST_SUITE_P(Modes, TableModesTest, testing::Combine(testing::Values(v1::SSP, v1::ASYNC), testing::Bool()));

TEST(TableSwitchTest, EachPushCountsOnceOverSwitches) {
  InProcessCluster cluster(
      {.servers = 3, .workers = kWorkers, .mode = v1::ASYNC, .tables = {Config(v1::TableConfig::SGD, 8)}});
  const auto before = Rows(cluster);
  std::thread switches([&] {
    cluster.Switch(v1::SSP, 1);
    cluster.Switch(v1::ASYNC, 0);
    cluster.Switch(v1::SSP, 3);
  });
  TrainAll(&cluster, /*ahead=*/true);
  switches.join();
  ExpectEachPushOnce(cluster, before);
}

// What is put there is what a worker says of tables: its tensors' gradients have their places already.
TEST(TableMemoryTest, WorkersPutKeysAndRowsInSharedMemoryAndUseItAgain) {
  InProcessCluster cluster({.shared_memory = true, .tables = {Config(v1::TableConfig::SGD, 8)}});
  FakeModel model = cluster.MakeModel();
  PsClient client(cluster.ClientOptions(0, &model));
  client.Start(cluster.plan());
  const size_t before = model.arena->bytes_left();
  for (int64_t step = 0; step < 30; ++step) {
    const std::vector<uint64_t> keys = KeysOf(0, step, HashOfTable(kSeed, 0));
    client.AskRows(0, keys);
    for (size_t tensor = 0; tensor < model.weights.size(); ++tensor) {
      ASSERT_TRUE(client.AwaitTensor(static_cast<int>(tensor)).value());
    }
    ASSERT_TRUE(client.AwaitRows(0).value());
    EXPECT_TRUE(client.uses_shared_memory());
    Parameters::Step begun;
    ASSERT_TRUE(client.BeginStep(&begun).value());
    for (size_t tensor = 0; tensor < model.weights.size(); ++tensor) client.PushTensor(tensor, {.examples = 1});
    client.PushRows(0, keys, std::vector<float>(keys.size() * kDimension, 1.0f), {.examples = 1});
  }
  ASSERT_TRUE(client.AwaitAcknowledgements().ok());
  const size_t used = before - model.arena->bytes_left();
  EXPECT_GT(used, 0);
  // Each step takes two blocks for what it pushes and two for what it asks for.
  EXPECT_LE(used, size_t{4 * 4 * 4096});
}

TEST(TableReadsTest, ReadingChangesNothing) {
  InProcessCluster cluster({.servers = 2, .workers = kWorkers, .tables = {Config(v1::TableConfig::ADAGRAD, 8)}});
  TrainAll(&cluster, /*ahead=*/true, GradientOf);
  const auto once = Rows(cluster);
  EXPECT_EQ(Rows(cluster), once);
}

}  // namespace
}  // namespace rubato::worker
