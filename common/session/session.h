#ifndef RUBATO_COMMON_SESSION_SESSION_H_
#define RUBATO_COMMON_SESSION_SESSION_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/security/task_security.h"
#include "common/session/clock_offset.h"
#include "common/session/session_stream.h"
#include "common/transport/poller.h"
#include "proto/coordinator.pb.h"

namespace rubato {

// A task's side of the Session stream: registers, sends heartbeats, receives directives, and registers again when the
// stream breaks or the coordinator is started anew. Thread-safe; has one thread of its own.
//
//   RUBATO_ASSIGN_OR_RETURN(session_, Session::Create(std::move(options)));
//   session_->Start();
//   session_->Send(message);           // a shard request, an acknowledgement, ...
//   session_->Leave("");
//
// A message may be lost with the stream that carries it. Everything is repeatable, so a task that waits for an answer
// sends its request again when it receives Registered, which follows every (re)connection. Leaving alone is repeated by
// the session itself. On every stream a heartbeat follows Register, before anything that was queued.
//
// A coordinator that was replaced may still speak: directives of a lower term than the highest that was heard of are
// dropped, over all streams of the session, and its stream is broken.
class Session {
 public:
  struct Options {
    // "host:port".
    std::string coordinator;
    // How it proves that it belongs to the job, and whom it believes to. Null: it does not, and everybody.
    std::shared_ptr<const TaskSecurity> security = nullptr;
    v1::TaskId task;
    v1::Register registration;
    // Called on the session's thread several times per lease; must be quick. The session itself adds when it was sent,
    // the process's memory and the last problem in `log`.
    std::function<v1::Heartbeat()> heartbeat;
    // Called on the session's thread, for one directive after the other. Must not call Leave or destroy the session.
    std::function<void(const v1::Directive&)> on_directive;
    // Called once on the session's thread when the coordinator could not be reached for as long as the two durations
    // below say (Unavailable, with the address and the last error), or does not take the task for who it says it is
    // (Unauthenticated, PermissionDenied). No directive follows.
    std::function<void(const absl::Status&)> on_lost;
    // Before the coordinator has registered the task: cluster.start_timeout_seconds.
    absl::Duration give_up_after = absl::Seconds(60);
    // And from then on, if that is longer.
    absl::Duration give_up_after_registered = absl::ZeroDuration();
    // The highest term that an earlier incarnation of the task in this process has heard of; 0: none.
    uint64_t term = 0;
    // Pause before the stream is opened again: doubled from the first to the second.
    absl::Duration retry_min = absl::Milliseconds(50);
    absl::Duration retry_max = absl::Milliseconds(500);
    // What moves its messages, and outlives it. Null: one that clients share.
    Poller* poller = nullptr;
    // Both outlive the session.
    const Clock* clock = nullptr;
    Logger* log = nullptr;
  };

  // Messages that may wait to be sent; what is sent beyond that is lost, as with a broken stream.
  static constexpr size_t kMaxQueued = 4096;

  // InvalidArgument: an option is missing.
  static absl::StatusOr<std::unique_ptr<Session>> Create(Options options);
  // Breaks the stream without a word to the coordinator, unless Leave was called before.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Once. The connection comes about on the session's thread, and callbacks begin.
  void Start();

  // By how much the coordinator's clock is ahead of `clock`; nothing before it has answered a heartbeat.
  std::optional<ClockOffset::Estimate> clock_offset();

  // The highest term that was heard of; 0: none.
  uint64_t term() const { return term_; }

  // Queues a message; `task` and `term` are filled in. Returns at once.
  void Send(v1::TaskMessage message);
  // Queues a heartbeat, which says what holds when it is sent: before all that is queued from now on.
  void Beat();

  // Registers again as a worker that has done its part with these counts, after a heartbeat and all that is queued, or
  // when the stream has broken; and so from then on.
  void RegisterDone(const v1::WorkerProgress& done);

  // Sends a last heartbeat and Leaving after all that is queued, and waits until the coordinator has taken that: it
  // then ends the stream with OK. If the stream breaks instead, registers again, with the same incarnation, and
  // repeats both. Stop and Restart are as good as an answer. `error` is empty when the task has done its part or was
  // asked to stop. DeadlineExceeded: not within `timeout`; the session goes on trying, and Leave may be called again to
  // wait on. Unavailable: the session was lost before. Nothing else is sent afterwards.
  absl::Status Leave(const std::string& error, absl::Duration timeout = absl::Seconds(5));
  absl::Status Leave(const v1::Leaving& leaving, absl::Duration timeout = absl::Seconds(5));

 private:
  enum class Farewell { kNone, kQueued, kSent };

  explicit Session(Options options);
  void Notify();
  void Run();
  // One round of the thread. Returns how long it may sleep.
  absl::Duration Step(absl::Time now);
  void Open(absl::Time now);
  void OnBroken(const absl::Status& status, absl::Time now);
  void Receive(const v1::Directive& directive);
  void WriteNext(absl::Time now);
  void WriteRegister();
  // Whether it is to register again, because it has done its part since.
  bool DoneSince();
  bool Write(v1::TaskMessage message);
  bool NextQueued(v1::TaskMessage* message);
  v1::TaskMessage HeartbeatMessage();
  // Whether the sender of the directive is one that was replaced.
  bool IsOutdated(const v1::Directive& directive);
  // There is nobody to come back to.
  void End() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void GiveUp(absl::Time now);

  const Options options_;
  // Null if the options have one.
  const std::shared_ptr<Poller> shared_poller_;
  std::unique_ptr<v1::Coordinator::Stub> stub_;

  Mutex mu_;
  CondVar wake_;
  CondVar left_cv_;
  bool signalled_ ABSL_GUARDED_BY(mu_) = false;
  bool quit_ ABSL_GUARDED_BY(mu_) = false;
  std::deque<v1::TaskMessage> queue_ ABSL_GUARDED_BY(mu_);
  Farewell farewell_ ABSL_GUARDED_BY(mu_) = Farewell::kNone;
  v1::Leaving leaving_ ABSL_GUARDED_BY(mu_);
  std::optional<v1::WorkerProgress> done_ ABSL_GUARDED_BY(mu_);
  // The coordinator knows that the task leaves, or needs not know, or the session was lost.
  bool over_ ABSL_GUARDED_BY(mu_) = false;
  bool lost_ ABSL_GUARDED_BY(mu_) = false;
  ClockOffset clock_offset_ ABSL_GUARDED_BY(mu_);
  // Set by the thread.
  std::atomic<uint64_t> term_;

  // The thread's own, once it runs.
  std::unique_ptr<SessionStream> stream_;
  // Register has been written to stream_, and the heartbeat after it; it has been answered with Registered or Stop.
  bool introduced_ = false;
  // That Register had `done`.
  bool introduced_done_ = false;
  bool greeted_ = false;
  bool registered_ = false;
  // Some stream was answered with Registered.
  bool was_registered_ = false;
  // The heartbeat that goes before Leaving has been written to stream_.
  bool last_heartbeat_sent_ = false;
  bool stopped_ = false;
  bool dead_ = false;
  // Of the last directive that was dropped.
  uint64_t outdated_term_ = 0;
  absl::Status last_error_;
  absl::Time out_of_contact_since_;
  absl::Time retry_at_;
  absl::Duration retry_pause_;
  absl::Duration heartbeat_interval_ = absl::Milliseconds(100);
  absl::Time heartbeat_at_;
  std::thread thread_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_SESSION_SESSION_H_
