#ifndef RUBATO_CLIENT_SIDECAR_MEMBER_H_
#define RUBATO_CLIENT_SIDECAR_MEMBER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/link/frame.h"
#include "client/sidecar/arrivals.h"
#include "client/sidecar/client_queue.h"
#include "client/sidecar/mapped_tensors.h"
#include "client/sidecar/membership.h"
#include "client/sidecar/step_loop.h"
#include "common/clock.h"
#include "common/health/health.h"
#include "common/log.h"
#include "common/metrics/metric_text.h"
#include "common/model_spec.h"
#include "common/mutex.h"
#include "common/network_link/link_model.h"
#include "common/security/task_security.h"
#include "common/straggler/straggler_model.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"
#include "worker/ps_client/cut_writer.h"
#include "worker/ps_client/initial_weights.h"

namespace rubato::client {

// One incarnation of a client's worker, from its registration to its goodbye: gives the initial weights to the servers
// if it is the one to do so, waits until it is in a plan, and steps. Run on one thread; the rest on any.
class Member {
 public:
  struct Options {
    // All pointers outlive it.
    const v1::JobConfig* config = nullptr;
    const ModelSpec* spec = nullptr;
    v1::TaskId task;
    // How it proves that it belongs to the job, and whom it believes to. Null: it does not, and everybody.
    std::shared_ptr<const TaskSecurity> security = nullptr;
    std::string coordinator;
    // Of the incarnation before.
    uint64_t term = 0;
    uint64_t rollbacks = 0;
    MappedTensors* memory = nullptr;
    // Given to the servers with the initial weights; cleared when nobody needs it any more.
    worker::InitialState* state = nullptr;
    ClientQueue* queue = nullptr;
    ClientCalls* calls = nullptr;
    Arrivals* arrivals = nullptr;
    // As of PsClient.
    bool keep_weights = false;
    // As of StepLoop.
    StragglerModel slow;
    LinkModel network;
    // Where its metrics are, "host:port"; empty: nowhere.
    std::string metrics_address;
    // Says whether it is ready for work.
    Health* health = nullptr;
    std::function<void(uint32_t request, const StepBody& step, const std::string& rows)> answer_begin;
    std::function<void(uint32_t request)> answer_moved;
    // The job needs nothing more of this worker.
    std::function<void(uint32_t request)> answer_end;
    std::function<void(uint32_t request, int64_t has)> answer_has_weights;
    std::function<void(uint32_t request, const std::string& rows)> answer_rows;
    std::function<void(uint32_t request, std::optional<LeaseBody>)> answer_lease;
    // How long it looks for a coordinator that has not registered it yet, and how long it may take to say goodbye.
    absl::Duration timeout;
    Clock* clock = nullptr;
    Logger* log = nullptr;
  };

  explicit Member(Options options);
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  // OK: the client has closed, or the worker has left as it was asked to. Cancelled: the job is over. Otherwise why the
  // worker gave up.
  absl::Status Run();
  // Whether the job goes back to a checkpoint, and another incarnation takes part in it. After Run.
  bool restarts() const { return restarts_; }
  uint64_t term() const { return term_; }
  // As it is while this worker steps. Any thread.
  std::optional<v1::JobDescription> job();

  // Adds what it measures to its page of metrics.
  void AddMetrics(MetricText* text);
  void WantLease(uint32_t request);
  // With keep_weights: the queue has the client's rubato_begin.
  void OnClientBegins();
  void GiveUp(absl::Status why);

 private:
  using End = StepLoop::End;

  absl::StatusOr<End> Train();
  // Nothing: it is time to leave.
  absl::StatusOr<std::optional<Membership::News>> AwaitPlan();
  absl::Status AssignInitialWeights(const v1::JobDescription& job);
  absl::StatusOr<End> Step(const Membership::News& news);
  StepLoop::Options StepOptions(const v1::JobDescription& job);
  // Of a worker that has done its part: it stays until the client closes, or the job is over.
  absl::Status AwaitClose();
  void Leave(const absl::Status& status, bool drained);
  v1::Heartbeat Heartbeat();
  void OnWork(const v1::Directive& directive);
  void OnOver(const absl::Status& why);

  const Options options_;
  worker::CutWriter cuts_;
  bool restarts_ = false;
  uint64_t term_ = 0;

  Mutex mu_;
  worker::InitialWeights* initial_ ABSL_GUARDED_BY(mu_) = nullptr;  // While it assigns.
  StepLoop* steps_ ABSL_GUARDED_BY(mu_) = nullptr;                  // While it steps.
  std::optional<v1::JobDescription> job_ ABSL_GUARDED_BY(mu_);      // Likewise.
  std::optional<uint32_t> lease_request_ ABSL_GUARDED_BY(mu_);      // For the steps to come.
  v1::WorkerProgress last_progress_ ABSL_GUARDED_BY(mu_);
  v1::TraceDone last_trace_ ABSL_GUARDED_BY(mu_);
  absl::Status gave_up_ ABSL_GUARDED_BY(mu_);
  Membership* joined_ ABSL_GUARDED_BY(mu_) = nullptr;
  std::unique_ptr<Membership> membership_;  // Last: its thread uses everything above.
};

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_SIDECAR_MEMBER_H_
