#ifndef RUBATO_CLIENT_SIDECAR_STEP_LOOP_H_
#define RUBATO_CLIENT_SIDECAR_STEP_LOOP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/link/frame.h"
#include "client/sidecar/arrivals.h"
#include "client/sidecar/client_progress.h"
#include "client/sidecar/client_queue.h"
#include "client/sidecar/client_rows.h"
#include "client/sidecar/lease_desk.h"
#include "client/sidecar/mapped_tensors.h"
#include "client/sidecar/tensor_reports.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/model_spec.h"
#include "common/network_link/link_model.h"
#include "common/network_link/link_relay.h"
#include "common/part_copies/part_peers.h"
#include "common/security/task_security.h"
#include "common/session/clock_offset.h"
#include "common/shared_memory/arena.h"
#include "common/straggler/straggler.h"
#include "common/straggler/straggler_model.h"
#include "common/trace/timed_trace.h"
#include "common/trace/trace_recorder.h"
#include "common/trace/trace_window.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"
#include "worker/ps_client/cut_writer.h"
#include "worker/ps_client/host_encoder.h"
#include "worker/ps_client/ps_client.h"
#include "worker/ps_client/row_puller.h"

namespace rubato::client {

// What of a client's calls outlives an incarnation of its worker. The thread's that steps.
struct ClientCalls {
  // By group: with what its tensors are updated from the next push on. Null if servers update nothing (MEAN).
  std::vector<std::shared_ptr<const v1::GroupHyperparameters>> groups;
  // By tensor.
  std::vector<uint32_t> group_of_tensor;
  // The rubato_begin that waits for its answer.
  std::optional<uint32_t> begin;
  // Likewise the rubato_read_rows.
  std::optional<Frame> read;
};

// A member's steps with the servers, in the client's place: begins them when the client asks, pushes what it pushes.
// What the client says of a step that was abandoned, because the job went back, is dropped until it begins the next
// one. Create and Run on one thread; the rest on any.
class StepLoop {
 public:
  struct Options {
    // Pointers outlive the loop.
    const v1::JobConfig* config = nullptr;
    v1::TaskId task;
    // How it proves that it belongs to the job, and whom it believes to. Null: it does not, and everybody.
    std::shared_ptr<const TaskSecurity> security = nullptr;
    v1::JobDescription job;
    const ModelSpec* spec = nullptr;
    MappedTensors* memory = nullptr;
    ClientQueue* queue = nullptr;
    ClientCalls* calls = nullptr;
    Arrivals* arrivals = nullptr;
    // As of PsClient.
    bool keep_weights = false;
    worker::CutWriter* cuts = nullptr;
    // How the worker is slowed down; nothing: it is not.
    StragglerModel slow;
    // The network link that it is put behind; nothing: none.
    LinkModel network;
    // How often the job has gone back for this client.
    uint64_t rollbacks = 0;
    // The answer to the client's rubato_begin, with the rows of tables (ClientRows::Take).
    std::function<void(uint32_t request, const StepBody& step, const std::string& rows)> answer_begin;
    // The answer to it instead, if the client has computed with weights that are void.
    std::function<void(uint32_t request)> answer_moved;
    // The answer to its rubato_has_weights.
    std::function<void(uint32_t request, int64_t has)> answer_has_weights;
    // The answer to its rubato_read_rows.
    std::function<void(uint32_t request, const std::string& rows)> answer_rows;
    LeaseDesk::Options leases;
    // A report for the coordinator of what tensors look like.
    std::function<void(v1::TensorReport)> send_tensors;
    std::function<void()> beat;
    // The newest that the coordinator has told of.
    std::function<v1::Plan()> newest_plan;
    std::function<std::optional<ClockOffset::Estimate>()> clock_offset;
    // Whether the worker is about to end.
    std::function<bool()> cancelled;
    Clock* clock = nullptr;
    Logger* log = nullptr;
  };

  // Why Run returned OK.
  enum class End { kDone, kDrained, kClosed };

  // Reads the residuals of the cut that the job goes on from. Errors of worker::ReadCutPart.
  static absl::StatusOr<std::unique_ptr<StepLoop>> Create(Options options);
  StepLoop(const StepLoop&) = delete;
  StepLoop& operator=(const StepLoop&) = delete;

  // From the plan's first step until the client closes, is asked to leave, or the job needs nothing more of it; all
  // pushes are acknowledged then. Errors of PsClient; DeadlineExceeded: the client does nothing while others wait for
  // it.
  absl::StatusOr<End> Run(const v1::Plan& plan);
  // Lets Run return `status`, or what it noticed first, soon.
  void Cancel(absl::Status status);

  // With keep_weights: the queue has the client's rubato_begin, so that weights may come in place of the last ones.
  void OnClientBegins() { client_->Wake(); }

  LeaseDesk* leases() { return &leases_; }
  void Record(const v1::RecordTrace& request) { timed_trace_.Record(request); }
  v1::TraceDone last_trace() { return timed_trace_.last(); }
  void Describe(v1::WorkerProgress* progress);

 private:
  using Step = worker::Parameters::Step;

  // How often a wait for the client looks at everything else.
  static constexpr absl::Duration kPoll = absl::Milliseconds(200);

  explicit StepLoop(Options options);
  absl::Status Prepare();
  absl::Status RestoreResiduals();
  absl::StatusOr<End> RunSteps();
  // False: it is time to leave.
  absl::StatusOr<bool> AwaitWeights();
  // How many of the first tensors are there, `there` up to now.
  absl::StatusOr<int> AwaitMore(int there);
  // What there is besides tensors. False: the step was moved, or it is time to leave.
  absl::StatusOr<bool> AwaitTables();
  // After the step was moved.
  void Restart();
  absl::StatusOr<bool> AwaitBegin();
  // The client waits for the step to begin, and what it has computed up to now is valid.
  bool HasBegin();
  // What the client says between two steps.
  void TakeBetweenSteps(const Frame& frame);
  absl::Status Begin(const Step& step, const std::string& rows);
  // What is added to a step passes before the client has its begin, so that it computes nothing meanwhile.
  absl::Status Pause();
  absl::Status TakePushes();
  // Returns whether it concerns the step's pushes.
  void TakeInStep(const Frame& frame);
  void Push(uint32_t tensor, uint64_t examples, bool absent);
  void PushRows(const Frame& frame);
  void PushRows(int table, const std::vector<uint64_t>& keys, const std::vector<float>& gradients, uint64_t examples);
  void PushRest();
  // Of a tensor, or of a table behind them. False: it was pushed.
  bool CountPush(size_t part);
  void AskRows(const Frame& frame);
  void HasWeights(const Frame& frame);
  // Answers the rubato_read_rows that waits, unless a server cannot be reached now.
  absl::Status ReadRows();
  void TakeEpoch(const Frame& frame);
  void TakeHyperparameters(const Frame& frame);
  absl::StatusOr<End> EndSteps();
  // The client has called. It may be silent for training.step_timeout_seconds while others wait for it.
  void Heard() { heard_at_ = options_.clock->Now(); }
  absl::Status CheckSilence();

  const Options options_;
  std::shared_ptr<SharedArena> arena_;
  // Null: servers are reached directly.
  std::shared_ptr<LinkRelay> link_;
  std::shared_ptr<worker::HostEncoder> encoder_;
  std::shared_ptr<const PartPeers> peers_;  // Null: nobody keeps copies.
  TraceRecorder trace_;
  TimedTrace timed_trace_;
  TraceWindow trace_window_;
  ClientProgress progress_;
  LeaseDesk leases_;
  TensorReports tensor_reports_;
  std::unique_ptr<worker::PsClient> client_;
  // Null: the model has no tables.
  std::unique_ptr<worker::RowPuller> row_puller_;
  std::unique_ptr<ClientRows> rows_;
  // The thread's that steps.
  Step step_;
  Straggler straggler_;
  // Of the step that was begun last, and since when the client computes in it.
  StepDelay delay_;
  absl::Time computes_since_;
  // By tensor, and by table behind them.
  std::vector<bool> pushed_;
  // By tensor, of those that the client had used when the step was moved: the versions of their chunks.
  std::vector<std::vector<int64_t>> used_versions_;
  size_t missing_ = 0;
  double epoch_ = 0;
  v1::ShardSlice slice_;
  absl::Time heard_at_;
  // Since when rows cannot be read.
  std::optional<absl::Time> unreadable_since_;
  bool paused_ = false;
};

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_SIDECAR_STEP_LOOP_H_
