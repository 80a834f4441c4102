#ifndef RUBATO_COORDINATOR_SESSION_REACTOR_H_
#define RUBATO_COORDINATOR_SESSION_REACTOR_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/limits/peer_counts.h"
#include "common/limits/refusal_log.h"
#include "common/mutex.h"
#include "common/security/identity.h"
#include "coordinator/job_runner.h"
#include "proto/coordinator.pb.h"

namespace rubato::coordinator {

// One Session call: reads a message at a time, hands it to the runner, and reads the next when that is handled. What is
// sent is queued, up to a bound beyond which the stream is broken (the task registers again and is told everything
// anew). Keeps itself alive until gRPC is through with it. Thread-safe.
class SessionReactor final : public grpc::ServerBidiReactor<v1::TaskMessage, v1::Directive>, public TaskStream {
 public:
  static constexpr size_t kMaxQueued = 1024;

  // Begins to read. `runner` and `refusals`, which may be null, outlive the call; `place` is held as long as it lasts.
  static SessionReactor* Start(JobRunner* runner, grpc::CallbackServerContext* context, PeerCounts::Place place,
                               RefusalLog* refusals);

  void Send(const v1::Directive& directive) override;
  void Handled() override;
  void Close(const absl::Status& why) override;

 private:
  SessionReactor(JobRunner* runner, grpc::CallbackServerContext* context, PeerCounts::Place place,
                 RefusalLog* refusals);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;
  void Note(absl::string_view kind, absl::string_view why) const;
  // Finishes once, when nothing is being written.
  void MaybeFinish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  JobRunner* const runner_;
  grpc::CallbackServerContext* const context_;
  const std::string peer_;
  const std::optional<Identity> identity_;
  RefusalLog* const refusals_;
  Mutex mu_;
  // Until the session is finished: whoever has been told its end may begin another at once.
  std::optional<PeerCounts::Place> place_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<SessionReactor> self_ ABSL_GUARDED_BY(mu_);
  v1::TaskMessage incoming_ ABSL_GUARDED_BY(mu_);
  // A message has come.
  bool heard_ ABSL_GUARDED_BY(mu_) = false;
  std::deque<v1::Directive> queue_ ABSL_GUARDED_BY(mu_);
  // queue_.front() is being written.
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  // Nothing is accepted any more; what is queued is still written unless broken_.
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  bool broken_ ABSL_GUARDED_BY(mu_) = false;
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_SESSION_REACTOR_H_
