#ifndef RUBATO_COMMON_SESSION_SESSION_H_
#define RUBATO_COMMON_SESSION_SESSION_H_

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mutex.h"
#include "proto/coordinator.grpc.pb.h"

namespace rubato {

// A task's side of its Session with the coordinator: registers, registers again with the same incarnation whenever the
// stream breaks, sends heartbeats, delivers directives. Messages that are on their way when the stream breaks are lost;
// both sides repeat what matters. Thread-safe.
//
//   RUBATO_ASSIGN_OR_RETURN(session_, Session::Create(std::move(options)));
//   session_->Start();            // callbacks may come from here on
//   session_->Send(message);
//   session_->Leave("");          // done
class Session {
 public:
  struct Options {
    // "host:port".
    std::string coordinator;
    v1::TaskId task;
    v1::Register registration;
    // Called on the session's threads, never two at once of a kind.
    std::function<v1::Heartbeat()> heartbeat;
    std::function<void(const v1::Directive&)> on_directive;
    // The coordinator could not be reached for `give_up_after`; called once, and nothing after it.
    std::function<void(absl::Status)> on_lost;
    absl::Duration give_up_after = absl::Seconds(60);
    const Clock* clock = nullptr;
    Logger* log = nullptr;
  };

  // InvalidArgument: an option is missing, or the coordinator's address is not "host:port".
  static absl::StatusOr<std::unique_ptr<Session>> Create(Options options);
  // Ends the stream; no callback runs afterwards.
  ~Session();

  void Start();

  // Sends a message, whose `task` is filled in, if there is a stream; otherwise it is lost.
  void Send(v1::TaskMessage message);

  // Says goodbye, waits until it is sent (at most a second), and ends. `error` empty: the task has done its part.
  void Leave(const std::string& error);

 private:
  using Stream = grpc::ClientReaderWriter<v1::TaskMessage, v1::Directive>;
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<Stream> stream;
  };

  explicit Session(Options options);

  // Connects, registers and reads, again and again.
  void ReadLoop();
  // One stream, from its start to its end. Returns why it ended.
  absl::Status ReadOneStream();
  // Writes what is queued, and heartbeats.
  void WriteLoop();
  void OnDirective(const v1::Directive& directive);
  bool stopping();

  const Options options_;
  std::unique_ptr<v1::Coordinator::Stub> stub_;

  Mutex mu_;
  CondVar changed_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::shared_ptr<Call> call_ ABSL_GUARDED_BY(mu_);  // Null while there is no stream.
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  std::deque<v1::TaskMessage> queue_ ABSL_GUARDED_BY(mu_);
  bool left_ ABSL_GUARDED_BY(mu_) = false;  // The goodbye was sent, or cannot be.
  absl::Duration heartbeat_interval_ ABSL_GUARDED_BY(mu_) = absl::Milliseconds(100);
  absl::Time contact_at_ ABSL_GUARDED_BY(mu_);
  std::thread reader_;
  std::thread writer_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_SESSION_SESSION_H_
