#include "client/sidecar/step_loop.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/sidecar/offer.h"
#include "client/sidecar/stretch.h"
#include "common/status.h"
#include "common/straggler/sleep_unless.h"
#include "common/task.h"
#include "common/trace/trace_files.h"
#include "worker/ps_client/cut_part.h"
#include "worker/ps_client/job_options.h"
#include "worker/ps_client/part_room.h"
#include "worker/ps_client/traffic_progress.h"

namespace rubato::client {
namespace {

// Rows that are read as they are wait for nobody.
constexpr absl::Duration kReadRowsTimeout = absl::Seconds(10);
// How much later than servers a worker may hear that the job goes back.
constexpr absl::Duration kGoingBack = absl::Seconds(1);

// The body of a frame that the library has made; zeros if it is none.
template <typename Body>
Body Decode(const Frame& frame) {
  Body body{};
  BodyReader reader(frame.body);
  if (!reader.Get(&body) || !reader.AtEnd()) return {};
  return body;
}

StepBody Describe(const worker::Parameters::Step& step, uint64_t rollbacks) {
  return {.step = step.step,
          .generation = step.generation,
          .staleness_bound = step.plan.staleness_bound(),
          .learning_rate_scale = LearningRateScale(step.plan),
          .rollbacks = rollbacks,
          .mode = static_cast<uint32_t>(step.plan.mode()),
          .workers = static_cast<uint32_t>(step.plan.members_size())};
}

}  // namespace

StepLoop::StepLoop(Options options)
    : options_(std::move(options)),
      trace_({.task = TaskName(options_.task),
              .task_index = options_.task.index(),
              .clock_offset = options_.clock_offset,
              .clock = options_.clock}),
      timed_trace_({.recorder = &trace_,
                    .clock = options_.clock,
                    .log = options_.log,
                    .directory = TraceDirectory(*options_.config),
                    .file = TraceFile(options_.task)}),
      trace_window_({.recorder = &trace_,
                     .steps = options_.config->training().trace_steps(),
                     .after = options_.config->training().trace_after_steps(),
                     .directory = TraceDirectory(*options_.config),
                     .file = TraceFile(options_.task),
                     .log = options_.log}),
      progress_(options_.clock, &trace_),
      leases_(options_.leases),
      tensor_reports_({.every_steps = options_.config->observability().histogram_every_steps(),
                       .spec = options_.spec,
                       .memory = options_.memory,
                       .is_reporter =
                           [this] {
                             const v1::Plan plan = options_.newest_plan();
                             return plan.members_size() > 0 && SameTask(plan.members(0), options_.task);
                           },
                       .send = options_.send_tensors}),
      straggler_(options_.slow, {.seed = options_.config->seed(),
                                 .worker = options_.task.index(),
                                 .workers = options_.config->cluster().workers()}),
      pushed_(options_.spec->tensors.size() + options_.spec->tables.size(), false),
      heard_at_(options_.clock->Now()) {}

absl::StatusOr<std::unique_ptr<StepLoop>> StepLoop::Create(Options options) {
  std::unique_ptr<StepLoop> loop(new StepLoop(std::move(options)));
  RUBATO_RETURN_IF_ERROR(loop->Prepare());
  return loop;
}

absl::Status StepLoop::Prepare() {
  const v1::JobConfig& config = *options_.config;
  if (!options_.network.is_none()) {
    RUBATO_ASSIGN_OR_RETURN(link_, LinkRelay::Create(options_.network, options_.clock));
  } else if (config.cluster().shared_memory() != v1::ClusterConfig::OFF) {
    RUBATO_ASSIGN_OR_RETURN(arena_, options_.memory->MakeArena());
  }
  encoder_ = std::make_shared<worker::HostEncoder>(
      options_.job, worker::HostEncoder::Options{.codecs = worker::PushCodecs(config, *options_.spec),
                                                 .seed = config.seed(),
                                                 .worker = options_.task.index(),
                                                 .arena = arena_});
  peers_ = MakePartPeers(config, options_.job, options_.task, options_.security, options_.clock, options_.log);
  options_.cuts->SetPeers(peers_);
  RUBATO_RETURN_IF_ERROR(RestoreResiduals());
  worker::PsClient::Options client = worker::PsClientOptions(config, *options_.spec);
  client.job = options_.job;
  client.task = options_.task;
  client.security = options_.security;
  client.clock = options_.clock;
  client.log = options_.log;
  client.memory = options_.memory;
  client.arena = arena_;
  client.link = link_;
  client.trace = &trace_;
  client.encoder = encoder_;
  client.keep_weights = options_.keep_weights;
  client_ = std::make_unique<worker::PsClient>(std::move(client));
  if (options_.spec->tables.empty()) return absl::OkStatus();
  row_puller_ = std::make_unique<worker::RowPuller>(options_.job, options_.task, options_.security.get(),
                                                    *options_.spec, config.seed());
  rows_ = std::make_unique<ClientRows>(options_.spec, config.seed(), client_.get(),
                                       [this](int table, const std::vector<uint64_t>& keys, float* rows) {
                                         return row_puller_->Pull(table, keys, kReadRowsTimeout, rows);
                                       });
  return absl::OkStatus();
}

absl::Status StepLoop::RestoreResiduals() {
  worker::WorkerPart part = worker::MakePartRoom(options_.job, *options_.spec, encoder_.get(), 0);
  if (options_.job.has_restore()) {
    const absl::StatusOr<bool> read = worker::ReadCutPart({.config = options_.config,
                                                           .cut = &options_.job.restore(),
                                                           .index = options_.task.index(),
                                                           .peers = peers_,
                                                           .cancelled = options_.cancelled,
                                                           .log = options_.log},
                                                          &part);
    if (!read.ok()) return Annotate(read.status(), "checkpoint to go on from");
  } else if (const std::string& from = options_.config->training().start_from(); !from.empty()) {
    const absl::StatusOr<bool> read = worker::ReadWorkerPart(from, options_.task.index(), nullptr, &part);
    if (!read.ok()) return Annotate(read.status(), "training.start_from");
  }
  worker::PutResiduals(part, encoder_.get());
  return absl::OkStatus();
}

void StepLoop::Cancel(absl::Status status) {
  client_->Cancel(std::move(status));
  if (row_puller_ != nullptr) row_puller_->Cancel();
  options_.queue->Wake();
}

absl::StatusOr<StepLoop::End> StepLoop::Run(const v1::Plan& plan) {
  options_.log->Info(absl::StrCat("trains from step ", plan.first_step(), " of plan ", plan.generation(), ", ",
                                  ModeName(plan.mode(), plan.staleness_bound()), " with ", plan.members_size(),
                                  " workers"));
  // What the client has used is of another line of history.
  if (options_.arrivals->Moved() > 0) options_.arrivals->MakeVoid();
  client_->Start(plan);
  absl::StatusOr<End> end = RunSteps();
  trace_window_.Finish();
  timed_trace_.Finish();
  return end;
}

absl::StatusOr<StepLoop::End> StepLoop::RunSteps() {
  const int64_t max_steps = options_.config->training().max_steps();
  for (;;) {
    trace_window_.BeginStep(progress_.steps_total());
    RUBATO_ASSIGN_OR_RETURN(const bool there, AwaitWeights());
    if (!there) return EndSteps();
    leases_.Acknowledged();
    if (max_steps > 0 && client_->next_step().step >= max_steps) return EndSteps();
    RUBATO_ASSIGN_OR_RETURN(const bool begins, AwaitBegin());
    if (!begins) return EndSteps();
    const std::string rows = rows_ == nullptr ? "" : rows_->Take();
    // Nothing is in flight, so it cannot have been moved.
    RUBATO_ASSIGN_OR_RETURN(const bool begun, client_->BeginStep(&step_));
    if (!begun) return absl::InternalError("a step moved while all of its weights were there");
    RUBATO_RETURN_IF_ERROR(Begin(step_, rows));
    RUBATO_RETURN_IF_ERROR(TakePushes());
  }
}

absl::StatusOr<bool> StepLoop::AwaitWeights() {
  const int all = static_cast<int>(options_.spec->tensors.size());
  bool complete = false;
  for (int there = 0; !complete;) {
    if (options_.queue->leaves()) return false;
    if (there < all) {
      RUBATO_ASSIGN_OR_RETURN(there, AwaitMore(there));
    } else {
      RUBATO_ASSIGN_OR_RETURN(complete, AwaitTables());
    }
    if (client_->moved()) {
      Restart();
      there = 0;
    } else {
      options_.arrivals->Arrived(static_cast<uint32_t>(there));
    }
  }
  for (size_t tensor = 0; tensor < used_versions_.size(); ++tensor) {
    if (client_->Versions(static_cast<int>(tensor)) != used_versions_[tensor]) options_.arrivals->MakeVoid();
  }
  used_versions_.clear();
  return true;
}

absl::StatusOr<bool> StepLoop::AwaitTables() {
  if (rows_ == nullptr) return true;
  RUBATO_ASSIGN_OR_RETURN(const bool all, client_->AwaitAll([this] { return options_.queue->leaves(); }));
  if (!all) return false;
  return rows_->Await();
}

absl::StatusOr<int> StepLoop::AwaitMore(int there) {
  const auto leaves = [this] { return options_.queue->leaves(); };
  if (options_.arrivals->used()) return client_->AwaitMore(there, leaves);
  // One wake for all tensors is enough for a client that does not ask for them one by one.
  const auto begins = [this] { return options_.keep_weights && options_.queue->Has(FrameKind::kBegin); };
  RUBATO_ASSIGN_OR_RETURN(bool all,
                          client_->AwaitAll([&] { return leaves() || options_.arrivals->used() || begins(); }));
  if (!all && begins()) {
    RUBATO_RETURN_IF_ERROR(client_->LetGoOfWeights());
    RUBATO_ASSIGN_OR_RETURN(all, client_->AwaitAll([&] { return leaves() || options_.arrivals->used(); }));
  }
  return all ? static_cast<int>(options_.spec->tensors.size()) : there;
}

void StepLoop::Restart() {
  const size_t used = options_.arrivals->Moved();
  while (used_versions_.size() < used) {
    used_versions_.push_back(client_->Versions(static_cast<int>(used_versions_.size())));
  }
  client_->Restart();
}

absl::StatusOr<bool> StepLoop::AwaitBegin() {
  Heard();
  while (!HasBegin()) {
    if (options_.queue->leaves()) return false;
    if (options_.cancelled()) return absl::CancelledError("the worker ends");
    if (const std::optional<Frame> frame = options_.queue->Next(kPoll)) TakeBetweenSteps(*frame);
    RUBATO_RETURN_IF_ERROR(ReadRows());
    RUBATO_RETURN_IF_ERROR(CheckSilence());
  }
  return !options_.queue->leaves();
}

bool StepLoop::HasBegin() {
  if (!options_.calls->begin.has_value()) return false;
  if (!options_.arrivals->TakeVoid()) return true;
  options_.answer_moved(*std::exchange(options_.calls->begin, std::nullopt));
  return false;
}

void StepLoop::TakeBetweenSteps(const Frame& frame) {
  if (frame.kind == FrameKind::kBegin) {
    options_.calls->begin = frame.request;
    progress_.OnBegin();
    paused_ = false;
    Heard();
  } else if (frame.kind == FrameKind::kHyperparameters) {
    TakeHyperparameters(frame);
  } else if (frame.kind == FrameKind::kReport) {
    progress_.OnReport(Decode<ReportBody>(frame));
  } else if (frame.kind == FrameKind::kEpoch) {
    TakeEpoch(frame);
  } else if (frame.kind == FrameKind::kPause) {
    paused_ = true;
  } else if (frame.kind == FrameKind::kReadRows) {
    options_.calls->read = frame;
    Heard();
  } else if (frame.kind == FrameKind::kHasWeights) {
    // Whatever is computed with them is dropped.
    options_.answer_has_weights(frame.request, 1);
  }
  // All else is of a step that is abandoned.
}

absl::Status StepLoop::Begin(const Step& step, const std::string& rows) {
  progress_.OnBegun(step.step, step.generation);
  if (const auto& group = options_.calls->groups.front(); group != nullptr) {
    progress_.SetLearningRate(group->learning_rate() * LearningRateScale(step.plan));
  }
  options_.log->SetPosition(step.generation, step.step);
  if (step.plan.has_cut() && step.step == step.plan.first_step()) {
    options_.cuts->Take(step.plan, leases_.Positions(),
                        worker::CopyResiduals(options_.job, *options_.spec, encoder_.get()));
    // Before a shard is reported that ends with this step or a later one.
    options_.beat();
  }
  pushed_.assign(pushed_.size(), false);
  missing_ = pushed_.size();
  tensor_reports_.BeginStep(progress_.steps_total());
  slice_.Clear();
  delay_ = straggler_.At(step.step);
  RUBATO_RETURN_IF_ERROR(Pause());
  computes_since_ = options_.clock->Now();
  Heard();
  leases_.Release();
  StepBody body = client::Describe(step, options_.rollbacks);
  // Without members that were lost since the plan began.
  if (const v1::Plan newest = options_.newest_plan(); newest.generation() == step.generation) {
    body.workers = static_cast<uint32_t>(newest.members_size());
  }
  options_.arrivals->Begun();
  options_.answer_begin(*std::exchange(options_.calls->begin, std::nullopt), body, rows);
  return absl::OkStatus();
}

absl::Status StepLoop::Pause() {
  if (delay_.pause() == absl::ZeroDuration()) return absl::OkStatus();
  SleepUnless([this] { return options_.cancelled() || options_.queue->leaves(); }, delay_.pause(), options_.clock);
  // The begin is answered by the next incarnation, if there is one.
  return options_.cancelled() ? absl::CancelledError("the worker ends") : absl::OkStatus();
}

absl::Status StepLoop::TakePushes() {
  while (missing_ > 0) {
    if (options_.cancelled()) return absl::CancelledError("the worker ends");
    if (options_.queue->closes()) {
      PushRest();
      break;
    }
    if (const std::optional<Frame> frame = options_.queue->Next(kPoll)) TakeInStep(*frame);
    RUBATO_RETURN_IF_ERROR(ReadRows());
    RUBATO_RETURN_IF_ERROR(CheckSilence());
  }
  progress_.OnStepPushed();
  tensor_reports_.EndStep(step_.step);
  return absl::OkStatus();
}

void StepLoop::TakeInStep(const Frame& frame) {
  switch (frame.kind) {
    case FrameKind::kPush:
    case FrameKind::kPushAbsent: {
      const PushBody push = Decode<PushBody>(frame);
      Push(static_cast<uint32_t>(push.tensor), push.examples, frame.kind == FrameKind::kPushAbsent);
      break;
    }
    case FrameKind::kPushRows:
      PushRows(frame);
      break;
    case FrameKind::kAskRows:
      AskRows(frame);
      break;
    case FrameKind::kHasWeights:
      HasWeights(frame);
      break;
    case FrameKind::kSkip:
      PushRest();
      break;
    case FrameKind::kSlice: {
      const SliceBody slice = Decode<SliceBody>(frame);
      slice_.set_shard(slice.shard);
      slice_.set_begin(slice.begin);
      slice_.set_end(slice.end);
      leases_.SetSlice(slice);
      break;
    }
    case FrameKind::kEpoch:
      TakeEpoch(frame);
      break;
    case FrameKind::kHyperparameters:
    case FrameKind::kReport:
    case FrameKind::kPause:
    case FrameKind::kReadRows:
      TakeBetweenSteps(frame);
      break;
    // Not between a begin and its last push: the library sees to it.
    case FrameKind::kBegin:
    case FrameKind::kReply:
    case FrameKind::kOpen:
    case FrameKind::kDefine:
    case FrameKind::kStart:
    case FrameKind::kLease:
    case FrameKind::kPut:
    case FrameKind::kErase:
    case FrameKind::kGet:
    case FrameKind::kBarrier:
    case FrameKind::kSwitch:
    case FrameKind::kCheckpoint:
    case FrameKind::kAwaitCheckpoint:
    case FrameKind::kState:
    case FrameKind::kFetchState:
    case FrameKind::kClose:
    case FrameKind::kAwait:
    case FrameKind::kForget:
      break;
  }
  Heard();
}

bool StepLoop::CountPush(size_t part) {
  if (pushed_[part]) return false;
  // Until its last push the client is at work, for all that others can see.
  if (missing_ == 1) {
    Stretch(options_.clock, computes_since_, delay_.factor,
            [this] { return options_.cancelled() || options_.queue->leaves(); });
  }
  pushed_[part] = true;
  --missing_;
  return true;
}

void StepLoop::Push(uint32_t tensor, uint64_t examples, bool absent) {
  if (tensor >= options_.spec->tensors.size() || !CountPush(tensor)) return;
  tensor_reports_.BeforePush(static_cast<int>(tensor), absent);
  const absl::Time begin = options_.clock->Now();
  client_->PushTensor(static_cast<int>(tensor),
                      {.examples = examples,
                       .absent = absent,
                       .epoch = epoch_,
                       .slice = slice_,
                       .hyperparameters = options_.calls->groups[options_.calls->group_of_tensor[tensor]]});
  progress_.OnPushed(begin, examples);
}

void StepLoop::PushRest() {
  for (uint32_t tensor = 0; tensor < options_.spec->tensors.size(); ++tensor) Push(tensor, 0, /*absent=*/true);
  for (size_t table = 0; table < options_.spec->tables.size(); ++table) PushRows(static_cast<int>(table), {}, {}, 0);
}

void StepLoop::HasWeights(const Frame& frame) {
  const auto tensor = Decode<HasWeightsBody>(frame).tensor;
  bool has = tensor < options_.spec->tensors.size() && client_->HasWeights(static_cast<int>(tensor));
  // Servers of a job that goes back to a checkpoint do not have the step's weights any more.
  if (!has) SleepUnless(options_.cancelled, kGoingBack, options_.clock);
  has = has || options_.cancelled();
  options_.answer_has_weights(frame.request, has ? 1 : 0);
}

void StepLoop::TakeEpoch(const Frame& frame) {
  epoch_ = Decode<double>(frame);
  progress_.OnEpoch(epoch_);
}

void StepLoop::TakeHyperparameters(const Frame& frame) {
  const auto body = Decode<HyperparametersBody>(frame);
  if (body.group >= options_.calls->groups.size() || options_.calls->groups[body.group] == nullptr) return;
  options_.calls->groups[body.group] = std::make_shared<const v1::GroupHyperparameters>(
      MakeGroup(static_cast<uint32_t>(body.group), body.values, options_.config->optimizer().algorithm()));
}

absl::StatusOr<StepLoop::End> StepLoop::EndSteps() {
  RUBATO_RETURN_IF_ERROR(client_->AwaitAcknowledgements());
  leases_.Stopped();
  if (options_.queue->closes()) return End::kClosed;
  return options_.queue->drains() ? End::kDrained : End::kDone;
}

absl::Status StepLoop::CheckSilence() {
  const absl::Duration limit = absl::Seconds(options_.config->training().step_timeout_seconds());
  const v1::Plan plan = client_->next_step().plan;
  const bool others_wait = plan.members_size() > 1 && plan.mode() != v1::ASYNC;
  if (paused_ || !others_wait || options_.clock->Now() - heard_at_ <= limit) return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrCat(TaskName(options_.task), ": its client has neither begun a step nor pushed for longer than ",
                   "training.step_timeout_seconds = ", options_.config->training().step_timeout_seconds(),
                   " after step ", step_.step, ", and others wait for it"));
}

void StepLoop::Describe(v1::WorkerProgress* progress) {
  progress_.Describe(progress);
  progress->set_slowed(worker::DescribeSlowed(options_.slow, link_.get()));
  worker::AddTraffic(client_->counters(), progress);
}

}  // namespace rubato::client
