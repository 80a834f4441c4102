#ifndef RUBATO_WORKER_PS_CLIENT_INITIAL_WEIGHTS_H_
#define RUBATO_WORKER_PS_CLIENT_INITIAL_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/model_spec.h"
#include "common/mutex.h"
#include "common/security/task_security.h"
#include "proto/coordinator.pb.h"
#include "worker/ps_client/batching.h"
#include "worker/ps_client/ps_client.h"
#include "worker/ps_client/server_connections.h"

namespace rubato::worker {

// What an optimizer keeps that has stepped before: with initial weights servers take it as their own.
struct InitialState {
  // By slot, then by tensor: as many elements as the tensor has. Empty: the optimizer is new.
  std::vector<std::vector<std::vector<float>>> slots;
  // By tensor: updates that it stands for.
  std::vector<int64_t> updates;

  // Of an optimizer with so many slots that has not stepped: every element is `value`.
  static InitialState Make(const ModelSpec& spec, size_t slots, float value);
  bool empty() const { return slots.empty(); }
};

// Gives a client's initial weights to the servers, before the job's first plan: each message is repeated until its
// server has acknowledged it, over broken connections. Assign on one thread, once; Cancel on any.
//
//   InitialWeights initial({.job = job, .task = task, .memory = &memory, ...});
//   RUBATO_RETURN_IF_ERROR(initial.Assign());
class InitialWeights : private ServerConnections::Handler {
 public:
  struct Options {
    // Whose chunks name servers by their places (NameServersByPlace).
    v1::JobDescription job;
    v1::TaskId task;
    // How it proves that it belongs to the job, and whom it believes to. Null: it does not, and everybody.
    std::shared_ptr<const TaskSecurity> security = nullptr;
    // How many the model has.
    int tensors = 0;
    int64_t message_bytes = 1 << 20;
    // Has the weights, which stay unchanged until Assign returns.
    PsClient::TensorMemory* memory = nullptr;
    // Of all tensors or of none; stays unchanged as well. Null: none.
    const InitialState* state = nullptr;
    // A server that is not reached, or does not acknowledge, for longer is given up.
    absl::Duration reconnect_timeout = absl::Seconds(60);
    absl::Duration wait_timeout = absl::Seconds(600);
    const Clock* clock = nullptr;
    Logger* log = nullptr;
  };

  explicit InitialWeights(Options options);

  // Returns when all servers have all of it. Unavailable: a server cannot be reached; FailedPrecondition: it refused,
  // both with its name. DeadlineExceeded: it did not answer in time. Cancel's status.
  absl::Status Assign();
  void Cancel(absl::Status status);

 private:
  struct Message {
    int batch = 0;
    // Counted from 1; 0: the weights.
    size_t slot = 0;
  };
  // What goes to one server, message after message.
  struct Server {
    std::vector<Message> messages;
    // The first that is not acknowledged.
    size_t next = 0;
    // Of the request that waits for its answer; 0: none.
    uint64_t request = 0;
  };

  void OnMessages(int connection, std::vector<grpc::ByteBuffer> messages,
                  std::shared_ptr<const SharedMemoryLink> memory) override;
  void TakeReply(int connection, const absl::StatusOr<DecodedReply>& reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnConnected(int connection) override;
  void OnUnreachable(absl::Status status) override;
  std::vector<bool> AwaitsAnswer() override;
  void SendNext(int connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  grpc::ByteBuffer MakeRequest(const Message& message, uint64_t request) const;
  const float* ValuesOf(const v1::ChunkPlacement& chunk, size_t slot) const;
  bool Done() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Fail(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  const Batching batching_;
  Mutex mu_;
  CondVar changed_;
  std::vector<Server> servers_ ABSL_GUARDED_BY(mu_);
  // Those whose last message is to be repeated soon.
  std::vector<int> to_repeat_ ABSL_GUARDED_BY(mu_);
  uint64_t last_request_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Status failed_ ABSL_GUARDED_BY(mu_);
  ServerConnections connections_;  // Last: its threads use everything above.
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_INITIAL_WEIGHTS_H_
