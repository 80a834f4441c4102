#ifndef RUBATO_COORDINATOR_SESSION_REACTOR_H_
#define RUBATO_COORDINATOR_SESSION_REACTOR_H_

#include <grpcpp/grpcpp.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "common/mutex.h"
#include "proto/coordinator.grpc.pb.h"

namespace rubato::coordinator {

// One task's Session stream: reads messages one at a time, sends directives in order. Keeps itself alive until gRPC is
// done with it. Thread-safe.
class SessionReactor : public grpc::ServerBidiReactor<v1::TaskMessage, v1::Directive> {
 public:
  struct Callbacks {
    // Called on gRPC's threads, one at a time per stream; must not block.
    std::function<void(const std::shared_ptr<SessionReactor>&, const v1::TaskMessage&)> on_message;
    // The stream has ended; the last call.
    std::function<void(const std::shared_ptr<SessionReactor>&)> on_closed;
  };

  // `peer`: gRPC's name of the other side's address.
  static SessionReactor* Start(std::string peer, Callbacks callbacks);

  // Queues a directive; dropped when the stream has ended. A task that reads none of thousands is cut off.
  void Send(const v1::Directive& directive);
  // Ends the stream after what is queued.
  void Close();

  const std::string& peer() const { return peer_; }
  // Who registered on the stream.
  void set_task(const v1::TaskId& task);
  v1::TaskId task();

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  SessionReactor(std::string peer, Callbacks callbacks) : peer_(std::move(peer)), callbacks_(std::move(callbacks)) {}

  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FinishOnce(grpc::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string peer_;
  const Callbacks callbacks_;
  std::shared_ptr<SessionReactor> self_;  // Until OnDone.
  v1::TaskMessage incoming_;              // gRPC's between StartRead and OnReadDone.

  Mutex mu_;
  v1::TaskId task_ ABSL_GUARDED_BY(mu_);
  std::deque<v1::Directive> queue_ ABSL_GUARDED_BY(mu_);  // The first is being written when `writing_`.
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_SESSION_REACTOR_H_
