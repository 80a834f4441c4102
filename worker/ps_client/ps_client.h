#ifndef RUBATO_WORKER_PS_CLIENT_PS_CLIENT_H_
#define RUBATO_WORKER_PS_CLIENT_PS_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/transport/exchange_client.h"
#include "common/wire/exchange_codec.h"
#include "proto/coordinator.pb.h"
#include "worker/parameters.h"
#include "worker/ps_client/batching.h"
#include "worker/ps_client/step_machine.h"

namespace rubato::worker {

// A worker's connection to all parameter servers: pulls weights into the model, pushes gradients out of it, survives
// broken connections and changes of plan. Used by one trainer thread; Cancel and the counters by any.
//
//   client->Start(plan);    // then as in Parameters
class PsClient : public Parameters, private StepMachine::Sink {
 public:
  // Where tensors live. Called from the client's threads; must outlive it.
  class TensorMemory {
   public:
    virtual ~TensorMemory() = default;
    // Weights of elements [offset, offset + count) have arrived, in pieces. The trainer does not use the tensor now.
    virtual void Store(int tensor, int64_t offset, const void* data, int64_t count) = 0;
    // The gradient, which stays unchanged until the push is acknowledged: until AwaitTensor returns for the next step.
    virtual grpc::Slice Gradient(int tensor, int64_t offset, int64_t count) = 0;
  };

  struct Options {
    v1::JobDescription job;
    v1::TaskId task;
    // Names of the model's tensors, in its order.
    std::vector<std::string> tensors;
    // Fail with "STOP_JOB: ..." when a server found a gradient that is not finite.
    bool stop_on_non_finite = false;
    int64_t message_bytes = 1 << 20;
    // A step that waits for longer fails with the names of those it waits for.
    absl::Duration wait_timeout = absl::Seconds(600);
    // A server that cannot be reached for longer is given up.
    absl::Duration reconnect_timeout = absl::Seconds(60);
    const Clock* clock = nullptr;
    Logger* log = nullptr;
    TensorMemory* memory = nullptr;
  };

  struct Counters {
    int64_t sent_bytes = 0;
    int64_t received_bytes = 0;
    int64_t non_finite = 0;
    // Steps by version staleness (the largest over their chunks); the last entry takes all above.
    std::vector<int64_t> staleness;
    // Whom the trainer waits for now; empty when it does not wait.
    std::string waiting_for;
    // How long the trainer waited for the first step of the current generation.
    absl::Duration entry_wait;
  };

  explicit PsClient(Options options);
  ~PsClient() override;

  // Asks for the plan's first step.
  void Start(const v1::Plan& plan);

  Step next_step() override;
  absl::StatusOr<bool> AwaitTensor(int tensor) override;
  void Restart() override;
  absl::StatusOr<bool> BeginStep(Step* step) override;
  void PushTensor(int tensor, uint64_t examples, double epoch) override;
  absl::Status AwaitAcknowledgements() override;

  // Ends every wait, now and later, with `status`.
  void Cancel(absl::Status status);

  Counters counters();

 private:
  // One connection to a server; a new one takes its place when it breaks.
  class Connection : public ExchangeClient::Handler {
   public:
    Connection(PsClient* client, uint32_t server) : client_(client), server_(server) {}
    void OnMessage(grpc::ByteBuffer message) override { client_->OnMessage(server_, this, std::move(message)); }
    void OnDisconnected(absl::Status status) override { client_->OnDisconnected(server_, this, std::move(status)); }

   private:
    PsClient* const client_;
    const uint32_t server_;
  };
  struct Link {
    std::string name;
    std::string address;
    std::unique_ptr<Connection> connection;
    std::unique_ptr<ExchangeClient> client;  // Null while there is no connection.
    absl::Time down_since = absl::InfinitePast();
    absl::Time retry_at = absl::InfinitePast();
    absl::Time heard_at = absl::InfinitePast();
  };

  void Send(const StepMachine::Request& request) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnMessage(uint32_t server, const Connection* connection, grpc::ByteBuffer message);
  void OnDisconnected(uint32_t server, const Connection* connection, absl::Status status);
  // Checks an answer with weights against the batch that it is for.
  absl::Status CheckWeights(const ChunkBatch& batch, const v1::ExchangeReply& reply, uint64_t payload_bytes) const;
  void StoreWeights(const ChunkBatch& batch, const PayloadView& payload);
  void TakeReply(int batch, const v1::ExchangeReply& reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Fail(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Reconnects what is broken, until the client ends.
  void Maintain();
  void Reconnect(uint32_t server);
  // Waits until `done`; the trainer's only wait.
  absl::Status AwaitLocked(const std::function<bool()>& done) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  const Batching batching_;

  Mutex mu_;
  CondVar changed_;
  StepMachine machine_ ABSL_GUARDED_BY(mu_);
  std::vector<Link> links_ ABSL_GUARDED_BY(mu_);  // By server.
  absl::Status failed_ ABSL_GUARDED_BY(mu_);
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  // By chunk: the version of the weights that the model has.
  std::vector<int64_t> versions_ ABSL_GUARDED_BY(mu_);
  // By batch: tensors of the current step whose gradients are still to come; whether an answer is being copied into
  // place, outside the lock.
  std::vector<int> missing_tensors_ ABSL_GUARDED_BY(mu_);
  std::vector<bool> storing_ ABSL_GUARDED_BY(mu_);
  // Examples of its contribution to the current step.
  std::vector<uint64_t> examples_ ABSL_GUARDED_BY(mu_);
  double epoch_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t step_staleness_ ABSL_GUARDED_BY(mu_) = -1;
  absl::Duration step_wait_ ABSL_GUARDED_BY(mu_);
  Counters counters_ ABSL_GUARDED_BY(mu_);
  std::thread maintenance_;  // Last: it uses everything above.
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_PS_CLIENT_H_
