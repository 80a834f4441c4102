#ifndef RUBATO_CLIENT_SIDECAR_SIDECAR_H_
#define RUBATO_CLIENT_SIDECAR_SIDECAR_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/link/channel.h"
#include "client/link/frame.h"
#include "client/rubato_client.h"
#include "client/sidecar/answers.h"
#include "client/sidecar/arrivals.h"
#include "client/sidecar/client_queue.h"
#include "client/sidecar/coordinator_calls.h"
#include "client/sidecar/coordinator_requests.h"
#include "client/sidecar/mapped_tensors.h"
#include "client/sidecar/member.h"
#include "client/sidecar/request_threads.h"
#include "common/clock.h"
#include "common/health/health.h"
#include "common/log.h"
#include "common/metrics/task_page.h"
#include "common/model_spec.h"
#include "common/mutex.h"
#include "common/network_link/link_model.h"
#include "common/security/task_security.h"
#include "common/straggler/straggler_model.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"
#include "worker/ps_client/initial_weights.h"

namespace rubato::client {

// The process beside a client: hears the client on one thread, is its worker on another, and asks the coordinator what
// the client wants to know. Ends when the client does. Run on one thread; Drain on any.
class Sidecar {
 public:
  struct Options {
    // The end of the socket pair whose other end the client has.
    int descriptor = -1;
    // No informational lines in the log.
    bool quiet = false;
    // As of StepLoop.
    StragglerModel slow;
    LinkModel network;
    // Where to answer HTTP requests for metrics, "host:port"; empty: nowhere.
    std::string metrics_listen;
    // The folder of credentials, for a job that asks for some; empty: none.
    std::string credentials;
    Clock* clock = nullptr;
  };

  explicit Sidecar(Options options);
  Sidecar(const Sidecar&) = delete;
  Sidecar& operator=(const Sidecar&) = delete;

  // Until the client has closed, or is gone.
  void Run();
  void Drain() { queue_.Drain(); }

 private:
  // Why the worker steps no further.
  struct End {
    rubato_result result = RUBATO_OK;
    std::string error;
    // The client knows.
    bool told = false;
  };

  // The reader's thread.
  void Read();
  void OnFrame(const Frame& frame);
  void OnGone(const std::string& why);
  bool ClientLives() const;
  void Open(const Frame& frame);
  void Define(const Frame& frame);
  void OfferModel(uint32_t request, const Model& model, TensorLayout layout, FileDescriptor memory,
                  Cancellation* cancellation);
  void Start(const Frame& frame);
  void Await(const Frame& frame);
  void Lease(const Frame& frame);
  void TakeState(const Frame& frame);
  void FetchState(const Frame& frame);
  absl::StatusOr<std::string> PullState(uint32_t slot, Cancellation* cancellation);
  void Close(const Frame& frame);

  // The worker's thread.
  bool AwaitStart();
  absl::Status RunMembers();
  Member::Options MemberOptions(Logger* log, uint64_t term, uint64_t rollbacks);
  // On the same port as the page before, if there was one. Null: nobody has asked for it.
  absl::StatusOr<std::unique_ptr<TaskPage>> OpenPage(Logger* log);
  // The worker is over: answers what waits for it, and all that comes.
  void TellEnd(const absl::Status& status);
  void AwaitGone();

  void AnswerEnd(uint32_t request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AnswerBegin(uint32_t request, const StepBody& step, const std::string& rows);
  void AnswerLease(uint32_t request, const std::optional<LeaseBody>& lease);
  v1::TaskId task();
  Logger MakeLogger();

  const Options options_;
  Channel channel_;
  Answers answers_;
  ClientQueue queue_;
  ClientCalls calls_;
  Arrivals arrivals_;
  // Set by rubato_open and rubato_define, before the worker's thread has to do with them.
  std::string coordinator_;
  std::shared_ptr<const TaskSecurity> security_;
  absl::Duration timeout_ = absl::Seconds(60);
  pid_t client_process_ = 0;
  std::unique_ptr<CoordinatorCalls> coordinator_calls_;
  std::unique_ptr<CoordinatorRequests> coordinator_requests_;
  v1::JobConfig config_;
  ModelSpec spec_;
  std::unique_ptr<MappedTensors> tensors_;
  // Whole before rubato_start, and from then on the worker's thread's.
  worker::InitialState state_;
  uint32_t slots_ = 0;
  bool keep_weights_ = false;
  bool defined_ = false;
  Health health_;
  int metrics_port_ = 0;  // 0: not known yet.
  // Incarnation 0: there is none yet.
  Mutex mu_;
  CondVar changed_;
  v1::TaskId task_ ABSL_GUARDED_BY(mu_);
  bool leases_ ABSL_GUARDED_BY(mu_) = false;
  bool started_ ABSL_GUARDED_BY(mu_) = false;
  bool gone_ ABSL_GUARDED_BY(mu_) = false;
  std::unique_ptr<Member> member_ ABSL_GUARDED_BY(mu_);
  absl::Status gave_up_ ABSL_GUARDED_BY(mu_);
  std::optional<End> end_ ABSL_GUARDED_BY(mu_);
  std::optional<uint32_t> lease_request_ ABSL_GUARDED_BY(mu_);
  std::optional<uint32_t> close_request_ ABSL_GUARDED_BY(mu_);
  RequestThreads requests_;  // Last: its threads use everything above.
};

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_SIDECAR_SIDECAR_H_
