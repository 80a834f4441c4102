#ifndef RUBATO_SERVER_SERVER_TASK_H_
#define RUBATO_SERVER_SERVER_TASK_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/health/health.h"
#include "common/limits/refusal_log.h"
#include "common/log.h"
#include "common/metrics/task_page.h"
#include "common/mutex.h"
#include "common/part_copies/part_service.h"
#include "common/part_copies/part_store.h"
#include "common/security/task_security.h"
#include "common/session/session.h"
#include "common/shared_memory/arena.h"
#include "common/shared_memory/listener.h"
#include "common/trace/timed_trace.h"
#include "common/trace/trace_recorder.h"
#include "common/trace/trace_window.h"
#include "common/transport/exchange_server.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"
#include "server/incarnations.h"
#include "server/server_core.h"
#include "server/work_queue.h"

namespace rubato::server {

// One incarnation of a server: listens, registers, serves until the coordinator says that the job is over, or that it
// is to start again. Then another one is made, of a new incarnation.
class ServerTask : public Incarnation, private ExchangeServer::Handler {
 public:
  struct Options {
    v1::JobConfig config;
    v1::TaskId task;
    // "host:port" of the coordinator, and where to listen; port 0 picks a free one.
    std::string coordinator;
    std::string listen;
    // How it proves that it belongs to the job, and whom it believes to. Null: it does not, and everybody.
    std::shared_ptr<const TaskSecurity> security = nullptr;
    // How long a port that is still taken is tried again; zero: it is tried once. An incarnation before may have had
    // it.
    absl::Duration listen_timeout = absl::ZeroDuration();
    // What others call this host; empty for the address that the coordinator sees.
    std::string advertise_host;
    // Where to answer HTTP requests for metrics, "host:port"; empty: nowhere.
    std::string metrics_listen;
    // Says whether the task is ready for work. Required.
    Health* health = nullptr;
    Clock* clock = nullptr;
    Logger* log = nullptr;
  };

  explicit ServerTask(Options options);

  absl::Status Run() override;
  bool restarts() override;
  void Cancel(absl::Status why) override;

 private:
  void OnMessage(std::shared_ptr<Connection> connection, grpc::ByteBuffer&& message) override;
  void OnClosed(uint64_t connection) override;
  // On the session's thread, which sends heartbeats, too, and so waits for nothing.
  void OnDirective(const v1::Directive& directive);
  // Of the job, in the order in which they came, on a thread of their own: to start a job may take long.
  void OnJobDirective(const v1::Directive& directive);
  absl::StatusOr<std::unique_ptr<ExchangeServer>> Listen();
  bool stopping();
  // Returns when the task is to end, and says why.
  absl::Status AwaitEnd();
  // Only the first cause counts.
  void End(absl::Status why, bool restart);
  // `port`: where this server listens. `metrics`: where it shows its metrics, empty for nowhere.
  Session::Options DescribeSession(int port, const std::string& metrics);
  absl::StatusOr<std::unique_ptr<TaskPage>> OpenPage();
  void Report(v1::TaskMessage message);
  void SetSession(Session* session);
  // Records the steps that training.trace_steps asks for, if it does.
  void OnStep(int64_t step);
  std::optional<ClockOffset::Estimate> ClockOffsetOfSession();
  // Sets the two below, if the config and the system allow it.
  void OfferSharedMemory();

  const Options options_;
  // Who is refused.
  RefusalLog refusals_;
  // Parts of checkpoints, for other servers.
  PartStore parts_;
  PartService part_service_;
  std::shared_ptr<SharedArena> arena_;
  std::unique_ptr<SharedMemoryListener> shared_;
  TraceRecorder recorder_;
  TimedTrace timed_trace_;
  std::unique_ptr<ServerCore> core_;
  // Directives for the core.
  std::unique_ptr<WorkQueue> directives_;

  Mutex trace_mu_;
  TraceWindow trace_window_ ABSL_GUARDED_BY(trace_mu_);

  Mutex mu_;
  CondVar changed_;
  // Where the core's reports go: Run()'s session. Null: nowhere.
  Session* session_ ABSL_GUARDED_BY(mu_) = nullptr;
  absl::Status ended_ ABSL_GUARDED_BY(mu_);
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  bool restart_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_SERVER_TASK_H_
