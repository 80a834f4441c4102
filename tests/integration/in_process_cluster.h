#ifndef RUBATO_TESTS_INTEGRATION_IN_PROCESS_CLUSTER_H_
#define RUBATO_TESTS_INTEGRATION_IN_PROCESS_CLUSTER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "common/clock.h"
#include "common/float_buffer.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/shared_memory/arena.h"
#include "common/shared_memory/listener.h"
#include "common/transport/exchange_server.h"
#include "proto/coordinator.pb.h"
#include "server/server_core.h"
#include "worker/ps_client/ps_client.h"

namespace rubato {

// A worker's tensors: plain arrays, or parts of an arena that servers can read.
class FakeModel : public worker::PsClient::TensorMemory {
 public:
  FakeModel(const ModelSpec& spec, bool shared_memory);

  float* Weights(int tensor, int64_t offset) override { return weights[tensor].data() + offset; }
  float* Gradient(int tensor, int64_t offset) override { return gradients[tensor]->data() + offset; }

  std::shared_ptr<SharedArena> arena;  // Null without shared memory.
  std::vector<std::vector<float>> weights;
  std::vector<FloatBuffer::Ptr> gradients;
};

// Real servers behind real sockets in one process, with the test in the coordinator's place.
class InProcessCluster {
 public:
  struct Options {
    int servers = 1;
    int workers = 1;
    v1::Mode mode = v1::SYNC;
    int64_t staleness_bound = 0;
    // Workers and servers exchange tensors through shared memory.
    bool shared_memory = false;
    int connections_per_server = 1;
    v1::CompressionConfig compression = {};
    // Default: momentum, learning rate 0.1.
    v1::OptimizerConfig optimizer = {};
    // Tables of the model, without defaults.
    std::vector<v1::TableConfig> tables = {};
  };

  // A model of two linear layers; its chunks are spread over the servers round robin.
  explicit InProcessCluster(Options options);
  ~InProcessCluster();

  const v1::JobDescription& job() const { return job_; }
  v1::Plan plan();
  const ModelSpec& model() const { return model_; }
  uint64_t seed() const { return config_.seed(); }
  Clock* clock() { return &clock_; }
  Logger* log() { return &log_; }

  static v1::TaskId Worker(uint32_t index);
  FakeModel MakeModel() const { return FakeModel(model_, options_.shared_memory); }
  // `model` outlives the client.
  worker::PsClient::Options ClientOptions(uint32_t worker, FakeModel* model);

  // Announces and commits a plan in `mode`, as the coordinator does.
  void Switch(v1::Mode mode, int64_t staleness_bound);
  // Takes a worker out of the plan.
  void Evict(uint32_t worker);
  // What servers said of such workers as they acknowledged the last plan.
  std::vector<v1::LostWorker> lost();
  // Ends all connections to a server; it listens on the same port again at once.
  void BreakConnections(int server);

 private:
  struct Server : public ConnectionHandler {
    std::shared_ptr<SharedArena> arena;
    std::unique_ptr<SharedMemoryListener> shared;
    std::unique_ptr<server::ServerCore> core;
    std::unique_ptr<ExchangeServer> transport;
    void OnMessage(std::shared_ptr<Connection> connection, grpc::ByteBuffer&& message) override {
      core->OnMessage(std::move(connection), message);
    }
    void OnClosed(uint64_t connection) override { core->OnClosed(connection); }
  };

  void StartServer(int index);
  void OnReport(v1::TaskMessage message);
  void SendToAll(const v1::Directive& directive);
  // Sends `plan` and waits until every server has acknowledged it.
  void Commit(const v1::Plan& plan);

  const Options options_;
  RealClock clock_;
  Logger log_{"cluster", &clock_};
  v1::JobConfig config_;
  ModelSpec model_;
  v1::JobDescription job_;
  std::vector<std::unique_ptr<Server>> servers_;
  Mutex mu_;
  CondVar changed_;
  v1::Plan plan_ ABSL_GUARDED_BY(mu_);  // The last one committed.
  int announce_acks_ ABSL_GUARDED_BY(mu_) = 0;
  int plan_acks_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<v1::LostWorker> lost_ ABSL_GUARDED_BY(mu_);
  int64_t highest_begun_ ABSL_GUARDED_BY(mu_) = -1;
};

}  // namespace rubato

#endif  // RUBATO_TESTS_INTEGRATION_IN_PROCESS_CLUSTER_H_
