#ifndef RUBATO_TESTS_INTEGRATION_IN_PROCESS_CLUSTER_H_
#define RUBATO_TESTS_INTEGRATION_IN_PROCESS_CLUSTER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "common/clock.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/transport/exchange_server.h"
#include "proto/coordinator.pb.h"
#include "server/server_core.h"
#include "worker/ps_client/ps_client.h"

namespace rubato {

// Real servers behind real sockets in one process, with the test in the coordinator's place.
class InProcessCluster {
 public:
  // A model of two linear layers with `inputs` inputs; its chunks are spread over the servers round robin.
  InProcessCluster(int servers, int workers, v1::Mode mode, int64_t staleness_bound);
  ~InProcessCluster();

  const v1::JobDescription& job() const { return job_; }
  v1::Plan plan();
  const ModelSpec& model() const { return model_; }
  Clock* clock() { return &clock_; }
  Logger* log() { return &log_; }

  static v1::TaskId Worker(uint32_t index);
  worker::PsClient::Options ClientOptions(uint32_t worker, worker::PsClient::TensorMemory* memory);

  // Announces and commits a plan in `mode`, as the coordinator does.
  void Switch(v1::Mode mode, int64_t staleness_bound);
  // Takes a worker out of the plan.
  void Evict(uint32_t worker);
  // Ends all connections to a server; it listens on the same port again at once.
  void BreakConnections(int server);

 private:
  struct Server : public ConnectionHandler {
    std::unique_ptr<server::ServerCore> core;
    std::unique_ptr<ExchangeServer> transport;
    void OnMessage(std::shared_ptr<Connection> connection, grpc::ByteBuffer message) override {
      core->OnMessage(std::move(connection), message);
    }
    void OnClosed(uint64_t) override {}
  };

  void OnReport(v1::TaskMessage message);
  void SendToAll(const v1::Directive& directive);
  // Sends `plan` and waits until every server has acknowledged it.
  void Commit(const v1::Plan& plan);

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
  int64_t highest_begun_ ABSL_GUARDED_BY(mu_) = -1;
};

}  // namespace rubato

#endif  // RUBATO_TESTS_INTEGRATION_IN_PROCESS_CLUSTER_H_
