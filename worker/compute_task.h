#ifndef RUBATO_WORKER_COMPUTE_TASK_H_
#define RUBATO_WORKER_COMPUTE_TASK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/health/health.h"
#include "common/log.h"
#include "common/metrics/metric_text.h"
#include "common/metrics/task_page.h"
#include "common/model_spec.h"
#include "common/mutex.h"
#include "common/network_link/link_model.h"
#include "common/security/task_security.h"
#include "common/session/session.h"
#include "common/straggler/straggler_model.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"
#include "worker/data/dataset.h"
#include "worker/device/backend_choice.h"
#include "worker/device/step_watchdog.h"
#include "worker/device/worker_model.h"

namespace rubato::worker {

// A task that computes on a model, a worker or an evaluator, from its start to its end: reads its data, opens its
// devices, joins the job, works and leaves. It joins when the devices are open and not before: until then nobody waits
// for it. What the work is, subclasses say.
class ComputeTask {
 public:
  // What a task that was told to restart leaves to the incarnation that comes after it.
  struct Legacy {
    // Null: there was none, or it had not opened it.
    std::shared_ptr<const Dataset> dataset;
    // The port of its metrics; 0: it had none.
    int metrics_port = 0;
    // The highest term that it had heard of.
    uint64_t term = 0;
  };

  struct Options {
    v1::JobConfig config;
    v1::TaskId task;
    // "host:port".
    std::string coordinator;
    // How it proves that it belongs to the job, and whom it believes to. Null: it does not, and everybody.
    std::shared_ptr<const TaskSecurity> security = nullptr;
    // How a worker is slowed down; nothing: it is not.
    StragglerModel slow;
    // The network link that a worker is put behind; nothing: none.
    LinkModel network;
    // Where to answer HTTP requests for metrics, "host:port"; empty: nowhere.
    std::string metrics_listen;
    // Of the incarnation before.
    Legacy legacy;
    // Says whether the task is ready for work. Required.
    Health* health = nullptr;
    Clock* clock = nullptr;
    Logger* log = nullptr;
    // Ends the process at once. Called when the device does not answer, so that Run() cannot return. Required.
    std::function<void()> abandon;
    BackendFactory factory;
  };

  explicit ComputeTask(Options options) : options_(std::move(options)) {}
  virtual ~ComputeTask() = default;
  ComputeTask(const ComputeTask&) = delete;
  ComputeTask& operator=(const ComputeTask&) = delete;

  // Returns when the job, or this task's part in it, is over. The status says why it was given up.
  absl::Status Run();
  // Whether that is because of something that stays so when the task is started again, found before it joined the job:
  // a device or memory that the machine has not, or an evaluator's bad test data. After Run().
  bool refused() const { return refused_; }
  // Whether it is because the coordinator has told it to restart: the job goes back to a checkpoint, and another
  // incarnation takes part in it. After Run().
  bool restarts();
  const Legacy& legacy() const { return legacy_; }

  // Both end Run() early. Thread-safe.
  // From a first signal: what is at work is finished, and the task leaves gracefully; Run() returns OK.
  void Drain();
  // Now: what is not acknowledged is given up.
  void Cancel(absl::Status why);

 protected:
  // What is there when the job is joined.
  struct Resources {
    const ModelSpec* spec;
    std::shared_ptr<const Dataset> dataset;
    WorkerModel* model;
    StepWatchdog* watchdog;
  };

  // What the coordinator and the operator have said so far.
  struct Told {
    // Its chunks name servers by their places in the list (NameServersByPlace).
    std::optional<v1::JobDescription> job;
    v1::Plan plan;  // The newest; generation 0: none.
    // What the job waits for before it begins.
    std::string waiting_for;
    bool drain = false;
    // The job is over for this task; with an error if that is why.
    bool stop = false;
    // And what is at work is given up.
    bool give_up = false;
    // Because another incarnation is to begin.
    bool restart = false;
    absl::Status error;

    // Why it is over: `error`, or Cancelled if there is none.
    absl::Status Why() const { return error.ok() ? absl::CancelledError("the job is over") : error; }
  };

  const Options& options() const { return options_; }
  // While Work() runs.
  Session* session() { return session_.get(); }

  Mutex mu_;
  CondVar changed_;  // Of `told_`, and what subclasses add.
  Told told_ ABSL_GUARDED_BY(mu_);
  // Drain() is why the work has ended.
  bool drained_ ABSL_GUARDED_BY(mu_) = false;

 private:
  // From joining the job to the end of this task's part in it. Its error is told to the coordinator.
  virtual absl::Status Work(const Resources& resources) = 0;
  virtual void AddMetrics(MetricText* text) = 0;
  virtual v1::Heartbeat Heartbeat() { return {}; }
  // Where gradients are put that peers on this host read. Empty: it does not matter where.
  virtual std::function<std::shared_ptr<void>(size_t bytes)> SendingMemory(const ModelSpec&) { return nullptr; }
  // A directive for this kind of task alone.
  virtual void OnDirectiveLocked(const v1::Directive& directive) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;
  virtual void OnDrainLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {}
  // It is over at once, because of `why`, which is not OK.
  virtual void OnStopLocked(const absl::Status&) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {}

  bool evaluates() const { return options_.task.role() == v1::TaskId::EVALUATOR; }
  absl::StatusOr<std::unique_ptr<TaskPage>> OpenPage();
  absl::StatusOr<std::unique_ptr<Session>> OpenSession(const TaskPage* page, const Dataset& dataset);
  // Opens the devices, joins and works.
  absl::Status JoinAndWork(std::shared_ptr<const Dataset> dataset);
  void OnDirective(const v1::Directive& directive);
  // The first description counts.
  void TakeJobLocked(const v1::JobDescription& description) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void StopLocked(const v1::Stop& stop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RestartLocked(const v1::Restart& restart) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void GiveUpLocked(absl::Status why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The device hangs: tells the coordinator, if it knows of this task, and ends. On the watchdog's thread.
  void Abandon(const std::string& what);
  // A worker that has done its part stays until the job has ended: if the job goes back, it is needed again. The
  // session has the deadline: it gives up a coordinator that is gone.
  void AwaitEnd();
  void Leave(const absl::Status& status);
  // Whether nobody waits for this task's goodbye.
  bool IsStopped();

  const Options options_;
  std::unique_ptr<Session> session_;  // Set before and reset after everything that uses it.
  // Set before the session begins.
  ModelSpec spec_;
  bool refused_ = false;
  Legacy legacy_;
  // The coordinator has heard of this task, or will.
  bool joins_ ABSL_GUARDED_BY(mu_) = false;
  // It says goodbye.
  bool leaves_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_COMPUTE_TASK_H_
