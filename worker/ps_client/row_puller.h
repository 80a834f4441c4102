#ifndef RUBATO_WORKER_PS_CLIENT_ROW_PULLER_H_
#define RUBATO_WORKER_PS_CLIENT_ROW_PULLER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/model_spec.h"
#include "common/mutex.h"
#include "common/security/task_security.h"
#include "proto/coordinator.pb.h"
#include "proto/parameter_server.grpc.pb.h"
#include "worker/ps_client/batching.h"
#include "worker/ps_client/table_parts.h"

namespace rubato::worker {

// Fetches rows of tables as they are, for measuring, over TCP: keys that nobody has pushed read as their initial
// weights, and stay as they are. Pull on one thread; Cancel on any.
class RowPuller {
 public:
  // `seed` is the job's.
  RowPuller(v1::JobDescription job, v1::TaskId task, const TaskSecurity* security, const ModelSpec& spec,
            uint64_t seed);

  // Writes a row for each of the keys, which come in the order of their hashes, each once. Errors: DeadlineExceeded or
  // Unavailable with the server's name; FailedPrecondition when a server refused; Cancelled: Cancel was called.
  absl::Status Pull(int table, const std::vector<uint64_t>& keys, absl::Duration timeout, float* rows);

  // Ends Pull, now and later, with Cancelled.
  void Cancel();

 private:
  absl::Status PullPart(int table, int batch, const std::vector<uint64_t>& keys, const KeyPart& part,
                        absl::Duration timeout, float* rows);

  const v1::JobDescription job_;
  const v1::TaskId task_;
  const Batching batching_;
  const std::vector<TableParts> tables_;
  std::vector<std::unique_ptr<v1::ParameterServer::Stub>> stubs_;  // By server.
  Mutex mu_;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  // Of the call that is open; null: none is.
  grpc::ClientContext* open_ ABSL_GUARDED_BY(mu_) = nullptr;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_ROW_PULLER_H_
