#ifndef RUBATO_COORDINATOR_COORDINATOR_SERVICE_H_
#define RUBATO_COORDINATOR_COORDINATOR_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mutex.h"
#include "coordinator/coordinator_core.h"
#include "coordinator/journal.h"
#include "coordinator/session_reactor.h"
#include "proto/coordinator.grpc.pb.h"

namespace rubato::coordinator {

// The coordinator's shell: the one mutex around CoordinatorCore, its journal and run record on disk, the streams of its
// tasks, and the thread that tells it the time. Thread-safe; no handler blocks.
class CoordinatorService : public v1::Coordinator::CallbackService {
 public:
  struct Options {
    CoordinatorCore::Options core;
    // Where journal and metrics.jsonl are written; exists.
    std::string run_directory;
    // Go on with the job of the journal that is there.
    bool resume = false;
    const Clock* clock = nullptr;
    Logger* log = nullptr;
  };

  // FailedPrecondition: there is a journal and `resume` is false, or none and it is true, or it is of another job.
  static absl::StatusOr<std::unique_ptr<CoordinatorService>> Create(Options options);
  ~CoordinatorService() override;

  // Waits until the job is over; its status.
  absl::Status AwaitFinish();
  // Ends the job as failed, as StopJob does.
  void RequestStop(const std::string& reason);

  grpc::ServerBidiReactor<v1::TaskMessage, v1::Directive>* Session(grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context, const v1::GetStatusRequest* request,
                                      v1::JobStatus* reply) override;
  grpc::ServerUnaryReactor* SwitchMode(grpc::CallbackServerContext* context, const v1::SwitchModeRequest* request,
                                       v1::SwitchModeReply* reply) override;
  grpc::ServerUnaryReactor* StopJob(grpc::CallbackServerContext* context, const v1::StopJobRequest* request,
                                    v1::StopJobReply* reply) override;

 private:
  // Role, index, incarnation.
  using TaskKey = std::tuple<int, uint32_t, uint64_t>;
  struct OpenSwitch {
    grpc::ServerUnaryReactor* reactor;
    v1::SwitchModeReply* reply;
    absl::Time deadline;
  };

  CoordinatorService(Options options, std::unique_ptr<CoordinatorCore> core, std::unique_ptr<JournalWriter> journal);

  void OnMessage(const std::shared_ptr<SessionReactor>& session, const v1::TaskMessage& message);
  void OnClosed(const std::shared_ptr<SessionReactor>& session);
  void Perform(Actions actions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Perform(const SendDirective& action) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Perform(const AppendJournal& action) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Perform(const AppendMetrics& action) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Perform(const LogLine& action) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Perform(const AnswerSwitch& action) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Perform(const Finish& action) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Tick();
  void CheckSwitchDeadlines(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  Mutex mu_;
  CondVar changed_;
  const std::unique_ptr<CoordinatorCore> core_ ABSL_PT_GUARDED_BY(mu_);
  const std::unique_ptr<JournalWriter> journal_ ABSL_PT_GUARDED_BY(mu_);
  std::ofstream metrics_ ABSL_GUARDED_BY(mu_);
  // The newest stream of each task.
  std::map<TaskKey, std::shared_ptr<SessionReactor>> sessions_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, OpenSwitch> switches_ ABSL_GUARDED_BY(mu_);
  uint64_t last_ticket_ ABSL_GUARDED_BY(mu_) = 0;
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status result_ ABSL_GUARDED_BY(mu_);
  std::thread ticker_;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_COORDINATOR_SERVICE_H_
