// Workers' clients against real servers over real sockets; gradients are a formula of worker, step and element.
#include "worker/ps_client/ps_client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "common/trace/trace_recorder.h"
#include "tests/integration/in_process_cluster.h"
#include "worker/ps_client/snapshot_puller.h"

namespace rubato::worker {
namespace {

void BeginStep(PsClient* client, int tensors) {
  for (int tensor = 0; tensor < tensors; ++tensor) ASSERT_TRUE(*client->AwaitTensor(tensor));
  Parameters::Step step;
  ASSERT_TRUE(*client->BeginStep(&step));
}

// Waits for some of the tensor, and then for all of it.
absl::StatusOr<bool> AwaitInParts(PsClient* client, int tensor, size_t elements) {
  for (size_t part : {elements / 3, 2 * elements / 3}) {
    absl::StatusOr<bool> awaited = client->AwaitElements(tensor, static_cast<int64_t>(part));
    if (!awaited.ok() || !*awaited) return awaited;
  }
  return client->AwaitTensor(tensor);
}

// Trains `steps` steps as a trainer does, matrices in parts; `after_step` may disturb it. Returns the
// weights that the next step has.
std::vector<std::vector<float>> Train(InProcessCluster* cluster, uint32_t worker, int64_t steps,
                                      const std::function<void(int64_t)>& after_step = {}, bool keep_weights = false) {
  FakeModel model = cluster->MakeModel();
  PsClient::Options options = cluster->ClientOptions(worker, &model);
  options.keep_weights = keep_weights;
  PsClient client(std::move(options));
  client.Start(cluster->plan());
  const int tensors = static_cast<int>(model.weights.size());
  int64_t done = 0;
  for (;;) {
    bool there = true;
    for (int tensor = 0; there && tensor < tensors; ++tensor) {
      absl::StatusOr<bool> awaited =
          tensor % 2 == 1 ? client.AwaitTensor(tensor) : AwaitInParts(&client, tensor, model.weights[tensor].size());
      EXPECT_TRUE(awaited.ok()) << awaited.status();
      if (!awaited.ok()) return {};
      there = *awaited;
    }
    if (there && done == steps) {
      EXPECT_TRUE(client.LetGoOfWeights().ok());
      return model.weights;
    }
    Parameters::Step step;
    if (there) {
      absl::StatusOr<bool> begun = client.BeginStep(&step);
      EXPECT_TRUE(begun.ok()) << begun.status();
      there = begun.ok() && *begun;
    }
    if (!there) {
      client.Restart();
      continue;
    }
    for (int tensor = 0; keep_weights && tensor < tensors; ++tensor) EXPECT_TRUE(client.HasWeights(tensor));
    for (int tensor = tensors - 1; tensor >= 0; --tensor) {
      const size_t elements = model.weights[tensor].size();
      const auto compute = [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          model.gradients[tensor]->data()[i] =
              0.01f * static_cast<float>((i + worker * 7 + step.step * 3) % 11) - 0.05f;
        }
      };
      Parameters::Pushed pushed = {.examples = 16 + worker};
      pushed.slice.set_shard(worker + 1);
      pushed.slice.set_begin(100 * step.step);
      pushed.slice.set_end(100 * step.step + 16);
      compute(0, elements / 2);
      if (tensor % 2 == 0) client.PushElements(tensor, static_cast<int64_t>(elements / 2), pushed);
      compute(elements / 2, elements);
      client.PushTensor(tensor, pushed);
    }
    ++done;
    if (after_step) after_step(done);
  }
}

std::vector<std::vector<float>> TrainTogether(InProcessCluster* cluster, int workers, int64_t steps,
                                              const std::function<void(int64_t)>& after_step = {},
                                              bool keep_weights = false) {
  std::vector<std::vector<float>> result;
  std::vector<std::thread> threads;
  for (int worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] {
      auto weights =
          Train(cluster, worker, steps, worker == 0 ? after_step : std::function<void(int64_t)>(), keep_weights);
      if (worker == 0) result = weights;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return result;
}

// How tensors travel.
struct Path {
  const char* name;
  bool shared_memory;
  int connections;
};

class PsClientTest : public testing::TestWithParam<Path> {
 protected:
  static InProcessCluster::Options Setup(int servers, int workers, v1::Mode mode, int64_t staleness_bound) {
    InProcessCluster::Options options;
    options.servers = servers;
    options.workers = workers;
    options.mode = mode;
    options.staleness_bound = staleness_bound;
    options.shared_memory = GetParam().shared_memory;
    options.connections_per_server = GetParam().connections;
    return options;
  }
};

INSTANTIATE_TEST_SUITE_P(Paths, PsClientTest,
                         testing::Values(Path{"Tcp", false, 1}, Path{"TcpThreeConnections", false, 3},
                                         Path{"SharedMemory", true, 1}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(PsClientTest, SyncGivesTheSameBitsForAnyNumberOfServers) {
  InProcessCluster one(Setup(1, 3, v1::SYNC, 0));
  auto expected = TrainTogether(&one, 3, 40);
  ASSERT_FALSE(expected.empty());
  for (int servers : {2, 3}) {
    InProcessCluster more(Setup(servers, 3, v1::SYNC, 0));
    EXPECT_EQ(TrainTogether(&more, 3, 40), expected) << servers << " servers";
  }
}

TEST_P(PsClientTest, SyncGivesTheSameBitsWhenConnectionsBreak) {
  InProcessCluster quiet(Setup(2, 2, v1::SYNC, 0));
  auto expected = TrainTogether(&quiet, 2, 60);
  InProcessCluster noisy(Setup(2, 2, v1::SYNC, 0));
  const auto disturb = [](InProcessCluster* cluster, int64_t step) {
    if (step % 10 == 5) cluster->BreakConnections(static_cast<int>(step / 10) % 2);
  };
  EXPECT_EQ(TrainTogether(&noisy, 2, 60, [&](int64_t step) { disturb(&noisy, step); }), expected);
  InProcessCluster kept(Setup(2, 2, v1::SYNC, 0));
  EXPECT_EQ(TrainTogether(
                &kept, 2, 60, [&](int64_t step) { disturb(&kept, step); }, /*keep_weights=*/true),
            expected);
}

TEST_P(PsClientTest, KeepsAStepsWeightsUntilTheyAreLetGo) {
  InProcessCluster cluster(Setup(2, 1, v1::SYNC, 0));
  FakeModel model = cluster.MakeModel();
  PsClient::Options options = cluster.ClientOptions(0, &model);
  options.keep_weights = true;
  PsClient client(std::move(options));
  client.Start(cluster.plan());
  const int tensors = static_cast<int>(model.weights.size());
  for (const bool lets_go : {false, true}) {
    BeginStep(&client, tensors);
    const std::vector<std::vector<float>> begun = model.weights;
    for (int tensor = 0; tensor < tensors; ++tensor) {
      EXPECT_TRUE(client.HasWeights(tensor));
      model.weights[tensor].back() += 1;
      EXPECT_FALSE(client.HasWeights(tensor));
      model.weights[tensor].back() -= 1;
    }
    model.weights = begun;
    for (int tensor = 0; tensor < tensors; ++tensor) {
      EXPECT_TRUE(client.HasWeights(tensor));
      model.gradients[tensor]->data()[0] = 1;
      client.PushTensor(tensor, {.examples = 1});
    }
    EXPECT_TRUE(*client.AwaitAll([] { return false; }));
    EXPECT_EQ(model.weights, begun);
    if (lets_go) {
      EXPECT_TRUE(client.LetGoOfWeights().ok());
      for (int tensor = 0; tensor < tensors; ++tensor) EXPECT_NE(model.weights[tensor], begun[tensor]);
    }
  }
  BeginStep(&client, tensors);
  for (int tensor = 0; tensor < tensors; ++tensor) EXPECT_TRUE(client.HasWeights(tensor));
}

TEST_P(PsClientTest, TrainsInSspAndAsync) {
  InProcessCluster ssp(Setup(2, 3, v1::SSP, 2));
  EXPECT_FALSE(TrainTogether(&ssp, 3, 50).empty());
  InProcessCluster async(Setup(2, 3, v1::ASYNC, 0));
  EXPECT_FALSE(TrainTogether(&async, 3, 50).empty());
}

TEST_P(PsClientTest, GoesOnAcrossChangesOfMode) {
  for (const bool keep_weights : {false, true}) {
    InProcessCluster cluster(Setup(2, 1, v1::SYNC, 0));
    const auto weights = Train(
        &cluster, 0, 60,
        [&](int64_t step) {
          if (step == 15) cluster.Switch(v1::ASYNC, 0);
          if (step == 30) cluster.Switch(v1::SSP, 1);
          if (step == 45) cluster.Switch(v1::SYNC, 0);
        },
        keep_weights);
    EXPECT_FALSE(weights.empty());
  }
}

TEST_P(PsClientTest, SyncGoesOnWithoutAnEvictedWorker) {
  InProcessCluster cluster(Setup(2, 2, v1::SYNC, 0));
  std::thread lost([&] { Train(&cluster, 1, 5); });
  std::thread evictor([&] {
    lost.join();
    cluster.Evict(1);
  });
  EXPECT_FALSE(Train(&cluster, 0, 30).empty());
  evictor.join();
}

TEST_P(PsClientTest, ServersSayHowFarAnEvictedWorkerCame) {
  InProcessCluster cluster(Setup(2, 2, v1::ASYNC, 0));
  EXPECT_FALSE(Train(&cluster, 0, 3).empty());
  EXPECT_FALSE(Train(&cluster, 1, 5).empty());
  EXPECT_TRUE(cluster.lost().empty());
  cluster.Evict(1);
  const std::vector<v1::LostWorker> lost = cluster.lost();
  ASSERT_GE(lost.size(), 2u);  // Of each server.
  for (const v1::LostWorker& worker : lost) {
    EXPECT_EQ(worker.task().index(), 1u);
    EXPECT_EQ(worker.step(), 4);
    EXPECT_EQ(worker.trained().shard(), 2u);
    EXPECT_EQ(worker.trained().next(), 416);
  }
}

TEST_P(PsClientTest, SaysHowManyOfTheFirstTensorsAreThere) {
  InProcessCluster cluster(Setup(2, 1, v1::SYNC, 0));
  FakeModel model = cluster.MakeModel();
  PsClient client(cluster.ClientOptions(0, &model));
  client.Start(cluster.plan());
  const int tensors = static_cast<int>(model.weights.size());
  for (int64_t step = 0; step < 3; ++step) {
    for (int there = 0; there < tensors;) {
      const absl::StatusOr<int> more = client.AwaitMore(there, [] { return false; });
      ASSERT_TRUE(more.ok()) << more.status();
      ASSERT_GT(*more, there);
      there = *more;
    }
    for (int tensor = 0; tensor < tensors; ++tensor) {
      const std::vector<int64_t> versions = client.Versions(tensor);
      ASSERT_FALSE(versions.empty());
      EXPECT_EQ(versions, std::vector<int64_t>(versions.size(), step));
    }
    Parameters::Step begun;
    ASSERT_TRUE(*client.BeginStep(&begun));
    EXPECT_EQ(*client.AwaitMore(0, [] { return true; }), 0);
    for (int tensor = tensors - 1; tensor >= 0; --tensor) client.PushTensor(tensor, {.examples = 1});
  }
}

TEST_P(PsClientTest, PushesWhatIsFinalOfATensorBeforeTheRest) {
  InProcessCluster cluster(Setup(2, 1, v1::SYNC, 0));
  FakeModel model = cluster.MakeModel();
  PsClient::Options options = cluster.ClientOptions(0, &model);
  options.message_bytes = 4;  // A message for each chunk.
  PsClient client(std::move(options));
  client.Start(cluster.plan());
  const int tensors = static_cast<int>(model.weights.size());
  BeginStep(&client, tensors);
  // Weights of the tensor's first chunk, of several, come for the next step while the others are still to be pushed.
  ASSERT_EQ(cluster.job().chunks(0).tensor(), 0u);
  ASSERT_EQ(cluster.job().chunks(1).tensor(), 0u);
  const auto first = static_cast<int64_t>(cluster.job().chunks(0).length());
  client.PushElements(0, first, {.examples = 1});
  ASSERT_TRUE(*client.AwaitElements(0, first));
  EXPECT_EQ(client.Versions(0)[0], 1);
  EXPECT_EQ(client.Versions(0)[1], 0);
  EXPECT_EQ(client.counters().pushes, 1);
  for (int tensor = tensors - 1; tensor >= 0; --tensor) client.PushTensor(tensor, {.examples = 1});
  for (int tensor = 0; tensor < tensors; ++tensor) {
    ASSERT_TRUE(*client.AwaitTensor(tensor));
    const std::vector<int64_t> versions = client.Versions(tensor);
    EXPECT_EQ(versions, std::vector<int64_t>(versions.size(), 1)) << tensor;
  }
  EXPECT_EQ(client.counters().pushes, cluster.job().chunks_size());
}

TEST_P(PsClientTest, TensorsTakeTheirPath) {
  InProcessCluster cluster(Setup(2, 1, v1::SYNC, 0));
  FakeModel model = cluster.MakeModel();
  PsClient client(cluster.ClientOptions(0, &model));
  client.Start(cluster.plan());
  ASSERT_TRUE(*client.AwaitTensor(0));
  EXPECT_EQ(client.uses_shared_memory(), GetParam().shared_memory);
}

TEST_P(PsClientTest, TracesTheBytesThatTravel) {
  InProcessCluster::Options setup = Setup(2, 1, v1::SYNC, 0);
  setup.compression.mutable_push()->set_codec(v1::INT8);
  setup.compression.mutable_pull()->set_codec(v1::BF16);
  InProcessCluster cluster(setup);
  FakeModel model = cluster.MakeModel();
  TraceRecorder trace({.task = "worker 0", .clock = cluster.clock()});
  trace.Start();
  PsClient::Options options = cluster.ClientOptions(0, &model);
  options.trace = &trace;
  PsClient client(std::move(options));
  client.Start(cluster.plan());
  const int tensors = static_cast<int>(model.weights.size());
  BeginStep(&client, tensors);
  for (int tensor = tensors - 1; tensor >= 0; --tensor) client.PushTensor(tensor, {.examples = 16});
  for (int tensor = 0; tensor < tensors; ++tensor) ASSERT_TRUE(*client.AwaitTensor(tensor));
  int64_t elements = 0, sent = 0, received = 0;
  for (const std::vector<float>& weights : model.weights) elements += static_cast<int64_t>(weights.size());
  const nlohmann::json recorded = nlohmann::json::parse(trace.ToJson());
  for (const nlohmann::json& event : recorded.at("traceEvents")) {
    if (event.value("cat", "") != "exchange") continue;
    sent += event.at("args").at("sent_bytes").get<int64_t>();
    received += event.at("args").at("received_bytes").get<int64_t>();
  }
  EXPECT_EQ(sent, elements + 4 * cluster.job().chunks_size());  // A scale for each chunk, none of which is longer.
  EXPECT_EQ(received, 2 * 2 * elements);
}

TEST_P(PsClientTest, AnEvictedWorkerIsToldSo) {
  InProcessCluster cluster(Setup(1, 2, v1::ASYNC, 0));
  cluster.Evict(1);
  FakeModel model = cluster.MakeModel();
  PsClient client(cluster.ClientOptions(1, &model));
  client.Start(cluster.plan());
  EXPECT_TRUE(absl::IsAborted(client.AwaitTensor(0).status()));
}

TEST_P(PsClientTest, NamesWhomItWaitsForAtTheDeadline) {
  InProcessCluster cluster(Setup(1, 2, v1::SYNC, 0));
  FakeModel model = cluster.MakeModel();
  PsClient::Options options = cluster.ClientOptions(0, &model);
  options.wait_timeout = absl::Seconds(3);  // More than the server's timeout.
  PsClient client(std::move(options));
  client.Start(cluster.plan());
  Parameters::Step step;
  for (size_t tensor = 0; tensor < model.weights.size(); ++tensor) ASSERT_TRUE(*client.AwaitTensor(tensor));
  ASSERT_TRUE(*client.BeginStep(&step));
  for (int tensor = static_cast<int>(model.weights.size()) - 1; tensor >= 0; --tensor)
    client.PushTensor(tensor, {.examples = 1});
  absl::Status status = client.AwaitTensor(0).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_NE(std::string(status.message()).find("worker 1"), std::string::npos) << status;
}

TEST_P(PsClientTest, AServerThatIsNotThereIsNamed) {
  InProcessCluster cluster(Setup(1, 1, v1::SYNC, 0));
  FakeModel model = cluster.MakeModel();
  PsClient::Options options = cluster.ClientOptions(0, &model);
  options.job.mutable_servers(0)->set_address("127.0.0.1:1");
  options.reconnect_timeout = absl::Milliseconds(300);
  PsClient client(std::move(options));
  client.Start(cluster.plan());
  absl::Status status = client.AwaitTensor(0).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_NE(std::string(status.message()).find("server 0 at 127.0.0.1:1"), std::string::npos) << status;
}

TEST(SnapshotPullerTest, GetsTheWeightsThatAStepStartsWith) {
  InProcessCluster reference({.servers = 2});
  auto expected = Train(&reference, 0, 20);  // What step 20 starts with.

  InProcessCluster cluster({.servers = 2});
  std::thread trainer([&] { Train(&cluster, 0, 30); });
  v1::TaskId evaluator;
  evaluator.set_role(v1::TaskId::EVALUATOR);
  evaluator.set_incarnation(9);
  SnapshotPuller puller(cluster.job(), evaluator, nullptr, 1 << 20);
  FakeModel model = cluster.MakeModel();
  auto snapshot = puller.Pull(20, absl::Seconds(10), [&](int tensor, int64_t offset, const void* data, int64_t count) {
    std::memcpy(model.Weights(tensor, offset), data, count * sizeof(float));
  });
  trainer.join();
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  if (snapshot->step == 20) {  // Training may have been faster than the request.
    EXPECT_EQ(model.weights, expected);
  }
  EXPECT_EQ(snapshot->version_min, snapshot->version_max);
}

}  // namespace
}  // namespace rubato::worker
