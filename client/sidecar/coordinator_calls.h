#ifndef RUBATO_CLIENT_SIDECAR_COORDINATOR_CALLS_H_
#define RUBATO_CLIENT_SIDECAR_COORDINATOR_CALLS_H_

#include <grpcpp/client_context.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/security/task_security.h"
#include "proto/coordinator.grpc.pb.h"

namespace rubato::client {

// Ends calls that wait, from another thread. Thread-safe.
class Cancellation {
 public:
  void Cancel();
  bool cancelled();

  // The call at work; null: none is.
  void Watch(grpc::ClientContext* context);
  // The same for what is no call: `cancel` ends it, and must not use this object. Null: nothing is.
  void Watch(std::function<void()> cancel);

 private:
  Mutex mu_;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  std::function<void()> cancel_ ABSL_GUARDED_BY(mu_);
};

// A client's requests to the coordinator besides its session. Each is repeated while the coordinator cannot be reached,
// for as long as `timeout`: what it asks for may be asked for twice. Errors, besides those of the coordinator:
// Unavailable, with its address; Cancelled. Thread-safe.
class CoordinatorCalls {
 public:
  CoordinatorCalls(std::string address, const TaskSecurity* security, absl::Duration timeout, Clock* clock);

  // Waits until the coordinator is there.
  absl::Status AwaitReachable(Cancellation* cancellation);

  absl::StatusOr<v1::OfferModelReply> OfferModel(const v1::OfferModelRequest& request, Cancellation* cancellation);
  absl::Status PutValue(const v1::PutValueRequest& request, Cancellation* cancellation);
  // Waits until somebody has put it.
  absl::StatusOr<std::string> GetValue(v1::GetValueRequest request, Cancellation* cancellation);
  // Waits until all are there.
  absl::Status AwaitBarrier(v1::BarrierRequest request, Cancellation* cancellation);
  absl::Status SwitchMode(const v1::SwitchModeRequest& request, Cancellation* cancellation);
  // Returns when it is written; its name.
  absl::StatusOr<std::string> WriteCheckpoint(Cancellation* cancellation);

 private:
  // Calls until the coordinator answers.
  absl::Status Repeat(absl::Duration deadline, const std::function<grpc::Status(grpc::ClientContext*)>& call,
                      Cancellation* cancellation);

  const std::string address_;
  const absl::Duration timeout_;
  Clock* const clock_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Coordinator::Stub> stub_;
};

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_SIDECAR_COORDINATOR_CALLS_H_
