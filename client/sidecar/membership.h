#ifndef RUBATO_CLIENT_SIDECAR_MEMBERSHIP_H_
#define RUBATO_CLIENT_SIDECAR_MEMBERSHIP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/health/health.h"
#include "common/log.h"
#include "common/model_spec.h"
#include "common/mutex.h"
#include "common/security/task_security.h"
#include "common/session/session.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"

namespace rubato::client {

// One incarnation of the worker as the coordinator knows it: its session, what was said on it so far, and how it
// leaves. Thread-safe.
class Membership {
 public:
  struct Options {
    // Outlives it, complete.
    const v1::JobConfig* config = nullptr;
    // Of its model; outlives it as well.
    const ModelSpec* spec = nullptr;
    v1::TaskId task;
    // How it proves that it belongs to the job, and whom it believes to. Null: it does not, and everybody.
    std::shared_ptr<const TaskSecurity> security = nullptr;
    // "host:port".
    std::string coordinator;
    // The highest term that the incarnation before has heard of.
    uint64_t term = 0;
    // Of its page of metrics; empty: it has none.
    std::string metrics_address;
    // Is told whether the worker is registered and does not leave.
    Health* health = nullptr;
    // How long it looks for a coordinator that has not registered it yet.
    absl::Duration timeout;
    std::function<v1::Heartbeat()> heartbeat;
    // Directives for what the worker does: shards, checkpoints, traces.
    std::function<void(const v1::Directive&)> on_work;
    // It is over, because of this, which is not OK (Cancelled: not an error). On any thread; may come again.
    std::function<void(const absl::Status&)> on_over;
    const Clock* clock = nullptr;
    Logger* log = nullptr;
  };

  // What the coordinator has said that a worker waits for before it trains.
  struct News {
    // Whose chunks name servers by their places.
    std::optional<v1::JobDescription> job;
    // The worker's plan; generation 0: it is in none yet.
    v1::Plan plan;
    // This worker is to assign the initial weights.
    bool assigns = false;
  };

  // Errors of Session::Create.
  static absl::StatusOr<std::unique_ptr<Membership>> Create(Options options);

  // Registers. Callbacks begin.
  void Start();
  // Waits until `enough` holds of the news, or `interrupted` does. Errors: why it is over.
  absl::StatusOr<News> Await(const std::function<bool(const News&)>& enough, const std::function<bool()>& interrupted);

  void Send(v1::TaskMessage message) { session_->Send(std::move(message)); }
  void Beat() { session_->Beat(); }
  std::optional<ClockOffset::Estimate> clock_offset() { return session_->clock_offset(); }
  uint64_t term() const { return session_->term(); }
  v1::Plan plan();

  // Gives up at once.
  void GiveUp(absl::Status why);
  bool is_over();
  // Why it is over; OK if it is not.
  absl::Status over();
  // Because the job goes back to a checkpoint, and another incarnation takes part in it.
  bool restarts();

  // Says goodbye, for at most so long; with an error if `status` is one. Not if nobody waits for it.
  void Leave(const absl::Status& status, bool drained, absl::Duration timeout);
  // It has done its part with these counts, and leaves the plan; Leave follows.
  void RegisterDone(const v1::WorkerProgress& done) { session_->RegisterDone(done); }

 private:
  explicit Membership(Options options) : options_(std::move(options)) {}

  void OnDirective(const v1::Directive& directive);
  void TakeJobLocked(const v1::JobDescription& description) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OverLocked(absl::Status why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsMember(const v1::Plan& plan) const;
  News NewsLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  Mutex mu_;
  CondVar changed_;
  std::optional<v1::JobDescription> job_ ABSL_GUARDED_BY(mu_);
  bool assigns_ ABSL_GUARDED_BY(mu_) = false;
  v1::Plan plan_ ABSL_GUARDED_BY(mu_);  // The newest; generation 0: none.
  std::string waiting_for_ ABSL_GUARDED_BY(mu_);
  absl::Status over_ ABSL_GUARDED_BY(mu_);
  bool restarts_ ABSL_GUARDED_BY(mu_) = false;
  bool leaves_ ABSL_GUARDED_BY(mu_) = false;
  std::unique_ptr<Session> session_;  // Last: its thread uses everything above.
};

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_SIDECAR_MEMBERSHIP_H_
