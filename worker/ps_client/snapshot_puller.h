#ifndef RUBATO_WORKER_PS_CLIENT_SNAPSHOT_PULLER_H_
#define RUBATO_WORKER_PS_CLIENT_SNAPSHOT_PULLER_H_

#include <grpcpp/client_context.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/mutex.h"
#include "common/security/task_security.h"
#include "proto/coordinator.pb.h"
#include "proto/parameter_server.grpc.pb.h"

namespace rubato::worker {

// Fetches all weights of a job at once, for measuring, or what its optimizer keeps. Speaks to the servers through an
// ordinary generated stub: it pulls rarely, and shows that the data path is plain protobuf. Pull on one thread; Cancel
// on any.
class SnapshotPuller {
 public:
  // Elements [offset, offset + count) of a tensor, in the message's memory.
  using Store = std::function<void(int tensor, int64_t offset, const void* data, int64_t count)>;

  struct Snapshot {
    // SYNC: the step that begins with exactly these weights. -1: each chunk as it was when it was asked for.
    int64_t step = -1;
    int64_t version_min = 0;
    int64_t version_max = 0;
    // Of a slot, by tensor: updates that changed the tensor, of its furthest chunk.
    std::vector<int64_t> updates;
  };

  SnapshotPuller(v1::JobDescription job, v1::TaskId task, const TaskSecurity* security, int64_t message_bytes);

  // at_step >= 0 asks for the weights that this SYNC step starts with, or a step soon after it when it has been passed;
  // -1 for the latest. Errors: DeadlineExceeded or Unavailable with the server's name; FailedPrecondition when a server
  // refused; Aborted when training was faster than every step that was asked for.
  // Cancelled: Cancel was called.
  absl::StatusOr<Snapshot> Pull(int64_t at_step, absl::Duration timeout, const Store& store);
  // The same of a slot of the optimizer's state, counted from 1, as it is now. FailedPrecondition if it has none.
  absl::StatusOr<Snapshot> PullSlot(uint32_t slot, absl::Duration timeout, const Store& store);

  // Ends Pull, now and later, with Cancelled.
  void Cancel();

 private:
  using Reply = v1::ExchangeReply;
  // A stream to a server.
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderWriter<v1::ExchangeRequest, Reply>> stream;
  };

  bool cancelled();
  // Opens them, for one try.
  std::vector<Call*> OpenCalls(absl::Duration timeout);
  absl::StatusOr<Snapshot> Pull(int64_t at_step, uint32_t slot, absl::Duration timeout, const Store& store);
  // One try over all servers; Aborted with *next_step if a step was late.
  absl::Status TryPull(int64_t at_step, uint32_t slot, absl::Duration timeout, std::vector<Reply>* replies,
                       int64_t* next_step);
  v1::ExchangeRequest RequestFor(size_t batch, int64_t at_step, uint32_t slot) const;
  absl::Status CheckReply(size_t batch, const Reply& reply) const;

  struct Batch {
    uint32_t server;
    uint32_t partition;
    std::vector<uint32_t> chunks;
  };

  const v1::JobDescription job_;
  const v1::TaskId task_;
  int tensors_ = 0;
  std::vector<Batch> batches_;
  std::vector<std::unique_ptr<v1::ParameterServer::Stub>> stubs_;  // By server.
  Mutex mu_;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  // By server, while there are some.
  std::vector<std::unique_ptr<Call>> calls_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_SNAPSHOT_PULLER_H_
