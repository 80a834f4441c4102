#include "worker/worker_task.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/config/compression.h"
#include "common/config/local_sgd.h"
#include "common/session/task_session.h"
#include "common/status.h"
#include "common/storage/file.h"
#include "common/task.h"
#include "common/trace/trace_files.h"
#include "common/trace/trace_recorder.h"
#include "kernels/optimizer/schedule.h"
#include "worker/data/open_dataset.h"
#include "worker/ps_client/host_packer.h"
#include "worker/ps_client/model_memory.h"
#include "worker/ps_client/not_finite.h"
#include "worker/ps_client/staged_parameters.h"
#include "worker/training/local_optimizer.h"
#include "worker/training/static_source.h"
#include "worker/worker_metrics.h"

namespace rubato::worker {
namespace {

constexpr absl::Duration kLeaveTimeout = absl::Seconds(1);
constexpr char kLastCheckpoint[] = "checkpoints/final";

// A clean end that is no failure of this worker.
bool EndsWithTheJob(const absl::Status& status) { return absl::IsCancelled(status); }

Prefetcher::Options PrefetchOptions(const v1::JobConfig& config, std::shared_ptr<const Dataset> dataset,
                                    const Clock* clock) {
  Prefetcher::Options prefetch;
  prefetch.dataset = std::move(dataset);
  prefetch.clock = clock;
  prefetch.seed = config.seed();
  prefetch.shuffle = !config.data().no_shuffle();
  prefetch.batch_size = ExamplesPerStep(config);
  prefetch.queue_batches = config.data().prefetch_batches();
  prefetch.threads = static_cast<int>(config.data().prefetch_threads());
  if (config.data().has_augmentation()) {
    prefetch.augmenter = std::make_shared<const ImageAugmenter>(config.data().augmentation(), config.seed(),
                                                                prefetch.dataset->input_shape());
  }
  return prefetch;
}

PsClient::Options ClientOptions(const v1::JobConfig& config, const ModelSpec& spec) {
  PsClient::Options client;
  for (const TensorSpec& tensor : spec.tensors) client.tensors.push_back(tensor.name);
  client.connections_per_server = static_cast<int>(config.cluster().connections_per_server());
  client.stop_on_non_finite = config.consistency().on_non_finite() == v1::ConsistencyConfig::STOP_JOB;
  client.message_bytes = static_cast<int64_t>(config.cluster().message_bytes());
  client.wait_timeout = absl::Seconds(config.cluster().wait_timeout_seconds());
  client.reconnect_timeout = absl::Seconds(config.cluster().start_timeout_seconds());
  return client;
}

// By tensor.
std::vector<CodecSpec> PushCodecs(const v1::JobConfig& config, const ModelSpec& spec) {
  std::vector<CodecSpec> codecs;
  for (const TensorSpec& tensor : spec.tensors) {
    const v1::CodecConfig codec = PushCodec(config, tensor.name);
    codecs.push_back({codec.codec(), codec.fraction()});
  }
  return codecs;
}

// Memory that servers on this host read gradients from: for each tensor the gradient and, where it is packed, what is
// sent instead. Null where the config or the system does not allow it.
std::shared_ptr<SharedArena> MakeArena(const v1::JobConfig& config, const ModelSpec& spec, const std::string& name,
                                       Logger* log) {
  if (config.cluster().shared_memory() == v1::ClusterConfig::OFF) return nullptr;
  // Four times the weights: once for the gradient, twice for what TOP_K makes of it if it keeps everything, an index
  // with each value, and once for the rounding of parts; a device
  // wants whole pages. Pages that are not used cost nothing.
  size_t bytes = size_t{1} << 20;
  for (const TensorSpec& tensor : spec.tensors) bytes += 4 * sizeof(float) * NumElements(tensor.shape) + 8192;
  absl::StatusOr<std::shared_ptr<SharedArena>> arena = SharedArena::Create(name, bytes);
  if (arena.ok()) return *std::move(arena);
  log->Warning(absl::StrCat("shares no memory with servers on this host: ", arena.status().message()));
  return nullptr;
}

// Part of the arena, which it keeps.
std::shared_ptr<void> AllocateIn(const std::shared_ptr<SharedArena>& arena, size_t bytes) {
  void* memory = arena == nullptr ? nullptr : arena->Allocate(bytes);
  return memory == nullptr ? nullptr : std::shared_ptr<void>(arena, memory);
}

}  // namespace

absl::Status WorkerTask::Run() {
  RUBATO_ASSIGN_OR_RETURN(ModelSpec spec, BuildModelSpec(options_.config.model()));
  RUBATO_ASSIGN_OR_RETURN(std::shared_ptr<const Dataset> dataset, OpenDataset(options_.config, spec, Split::kTrain));
  RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<TaskPage> page, OpenPage());
  Session::Options session =
      TaskSessionOptions(options_.config, options_.coordinator, options_.task, options_.clock, options_.log);
  if (page != nullptr) session.registration.set_metrics_address(page->address());
  session.registration.set_train_examples(dataset->size());
  session.heartbeat = [this] { return Heartbeat(); };
  session.on_directive = [this](const v1::Directive& directive) { OnDirective(directive); };
  session.on_lost = [this](absl::Status status) { Cancel(std::move(status)); };
  RUBATO_ASSIGN_OR_RETURN(session_, Session::Create(std::move(session)));
  absl::Status status = Work(spec, std::move(dataset));
  if (EndsWithTheJob(status)) status = absl::OkStatus();
  options_.health->SetServing(false);
  Leave(status);
  session_.reset();
  return status;
}

absl::Status WorkerTask::Work(const ModelSpec& spec, std::shared_ptr<const Dataset> dataset) {
  const v1::JobConfig& config = options_.config;
  StepWatchdog watchdog({.limit = absl::Seconds(config.training().step_timeout_seconds()),
                         .clock = options_.clock,
                         .on_expired = [this](const std::string& what) { Abandon(what); }});
  const std::shared_ptr<SharedArena> arena = MakeArena(config, spec, TaskName(options_.task), options_.log);
  const absl::StatusOr<std::unique_ptr<WorkerModel>> model =
      WorkerModel::Create({.config = &config,
                           .spec = &spec,
                           .sending_memory = [arena](size_t bytes) { return AllocateIn(arena, bytes); },
                           .makers = options_.makers,
                           .watchdog = &watchdog,
                           .log = options_.log});
  if (!model.ok()) {
    refused_ = IsRefusal(model.status());
    return model.status();
  }
  {
    MutexLock lock(mu_);
    joins_ = true;
  }
  session_->Start();
  v1::JobDescription job;
  RUBATO_ASSIGN_OR_RETURN(const v1::Plan plan, AwaitMembership(&job));
  return Train({.spec = &spec, .arena = arena, .model = model->get(), .watchdog = &watchdog}, job, plan,
               std::move(dataset));
}

void WorkerTask::Leave(const absl::Status& status) {
  v1::Leaving leaving;
  leaving.set_error(std::string(status.message()));
  if (IsNotFinite(status)) leaving.set_cause(v1::Leaving::NOT_FINITE);
  {
    MutexLock lock(mu_);
    if (!joins_) return;
    leaving.set_drained(status.ok() && drained_);
  }
  if (leaving.drained()) options_.log->Info("leaves the job, as it was asked to");
  if (absl::Status left = session_->Leave(leaving, kLeaveTimeout); !left.ok()) {
    options_.log->Warning(absl::StrCat("leaves without the coordinator's knowledge: ", left.message()));
  }
}

absl::StatusOr<std::unique_ptr<TaskPage>> WorkerTask::OpenPage() {
  TaskPage::Options options;
  options.listen = options_.metrics_listen;
  options.task = options_.task;
  options.metrics = [this](MetricText* text) {
    v1::Plan plan;
    v1::WorkerProgress progress;
    {
      MutexLock lock(mu_);
      plan = plan_;
      progress = ProgressLocked();
    }
    AddWorkerMetrics(progress, plan, text);
  };
  options.health = options_.health;
  options.clock = options_.clock;
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<TaskPage> page, TaskPage::Create(std::move(options)));
  if (page != nullptr) options_.log->Info(absl::StrCat("shows its metrics on port ", page->port()));
  return page;
}

bool WorkerTask::IsMember(const v1::Plan& plan) const {
  return std::any_of(plan.members().begin(), plan.members().end(),
                     [&](const v1::TaskId& member) { return SameTask(member, options_.task); });
}

bool WorkerTask::IsFirstMember() {
  MutexLock lock(mu_);
  return plan_.members_size() > 0 && SameTask(plan_.members(0), options_.task);
}

TensorReporter::Options WorkerTask::DescribeTensors(const ModelSpec& spec, const Model* model, Backend* backend) {
  TensorReporter::Options options;
  options.every_steps = options_.config.observability().histogram_every_steps();
  options.spec = &spec;
  options.model = model;
  options.backend = backend;
  options.is_reporter = [this] { return IsFirstMember(); };
  options.send = [this](v1::TensorReport report) {
    v1::TaskMessage message;
    *message.mutable_tensors() = std::move(report);
    session_->Send(std::move(message));
  };
  return options;
}

absl::StatusOr<v1::Plan> WorkerTask::AwaitMembership(v1::JobDescription* job) {
  const absl::Time begin = options_.clock->Now();
  absl::Time next_log = begin + absl::Seconds(2);
  MutexLock lock(mu_);
  for (;;) {
    if (stop_) return ended_.ok() ? absl::CancelledError("the job is over") : ended_;
    if (drain_) {
      drained_ = true;
      return absl::CancelledError("asked to stop");
    }
    if (job_.has_value() && IsMember(plan_)) {
      *job = *job_;
      return plan_;
    }
    // The coordinator has a deadline for the start of the job and says when it has passed.
    const absl::Time now = options_.clock->Now();
    if (now >= next_log) {
      options_.log->Info(absl::StrCat("waits for ", waiting_for_.empty() ? "the coordinator" : waiting_for_));
      next_log = now + absl::Seconds(5);
    }
    changed_.WaitFor(mu_, absl::Milliseconds(200));
  }
}

void WorkerTask::Abandon(const std::string& what) {
  options_.log->Error(absl::StrCat(what, "; gives up"));
  // Otherwise the others would wait for the lease.
  Leave(absl::DeadlineExceededError(what));
  options_.abandon();
}

void WorkerTask::SendShardRequest(const v1::ShardRequest& request) {
  v1::TaskMessage message;
  *message.mutable_shard_request() = request;
  session_->Send(std::move(message));
}

absl::StatusOr<WorkerTask::Packing> WorkerTask::MakePacking(const v1::JobDescription& job, const Equipment& equipment,
                                                            bool is_staged) {
  const v1::JobConfig& config = options_.config;
  Packing packing;
  if (is_staged) {
    RUBATO_ASSIGN_OR_RETURN(packing.on_device, DevicePacker::Create(job, {.model = equipment.model->lead(),
                                                                          .backend = equipment.model->backend(),
                                                                          .codecs = PushCodecs(config, *equipment.spec),
                                                                          .seed = config.seed(),
                                                                          .worker = options_.task.index()}));
    packing.packer = packing.on_device;
  } else {
    packing.packer =
        std::make_shared<HostPacker>(job, HostPacker::Options{.codecs = PushCodecs(config, *equipment.spec),
                                                              .seed = config.seed(),
                                                              .worker = options_.task.index(),
                                                              .arena = equipment.arena});
  }
  return packing;
}

absl::Status WorkerTask::Train(const Equipment& equipment, const v1::JobDescription& job, const v1::Plan& plan,
                               std::shared_ptr<const Dataset> dataset) {
  const v1::JobConfig& config = options_.config;
  const ModelSpec& spec = *equipment.spec;
  WorkerModel* const model = equipment.model;
  StepWatchdog* const watchdog = equipment.watchdog;
  std::optional<StepWatchdog::Watch> preparing(std::in_place, watchdog, "allocate memory for copies");
  RUBATO_ASSIGN_OR_RETURN(ModelMemory memory, ModelMemory::Create(model->model()));
  std::unique_ptr<LocalOptimizer> local;
  if (BatchesPerStep(config) > 1) {
    RUBATO_ASSIGN_OR_RETURN(local, LocalOptimizer::Create(config.optimizer(), model->lead(), model->backend()));
  }
  RUBATO_ASSIGN_OR_RETURN(const Packing packing, MakePacking(job, equipment, memory.is_staged()));
  preparing.reset();
  // Before any of that goes.
  const auto wait = absl::MakeCleanup([model] { model->AwaitDevices(); });
  Residuals residuals;
  for (int chunk = 0; chunk < job.chunks_size(); ++chunk) residuals.push_back(packing.packer->residual(chunk));
  RUBATO_RETURN_IF_ERROR(RestoreResiduals(spec, job, residuals));
  if (packing.on_device != nullptr) {
    StepWatchdog::Watch watch(watchdog, "what codecs had kept back");
    RUBATO_RETURN_IF_ERROR(packing.on_device->UseResiduals());
  }

  TraceRecorder trace({.task = TaskName(options_.task),
                       .task_index = options_.task.index(),
                       .clock_offset = [this] { return session_->clock_offset(); },
                       .clock = options_.clock});
  TimedTrace timed_trace({.recorder = &trace,
                          .clock = options_.clock,
                          .log = options_.log,
                          .directory = TraceDirectory(config),
                          .file = TraceFile(options_.task)});

  const int64_t train_examples = dataset->size();
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<Prefetcher> prefetcher,
                          Prefetcher::Create(PrefetchOptions(config, std::move(dataset), options_.clock)));
  StaticSource fixed({&config, options_.task, train_examples, prefetcher.get()});
  DynamicSource dynamic({&config, train_examples, prefetcher.get(),
                         [this](const v1::ShardRequest& request) { SendShardRequest(request); }, options_.clock});
  const bool is_static = config.data().dispatch() == v1::DataConfig::STATIC;

  PsClient::Options client_options = ClientOptions(config, spec);
  client_options.job = job;
  client_options.task = options_.task;
  client_options.clock = options_.clock;
  client_options.log = options_.log;
  client_options.memory = &memory;
  client_options.arena = equipment.arena;
  client_options.trace = &trace;
  client_options.packer = packing.packer;
  PsClient client(std::move(client_options));
  StagedParameters staged(&client, &memory, packing.on_device.get(), model->backend(), watchdog);

  Trainer::Options trainer_options;
  trainer_options.config = &config;
  trainer_options.spec = &spec;
  trainer_options.model = model->model();
  trainer_options.parameters = memory.is_staged() ? static_cast<Parameters*>(&staged) : &client;
  trainer_options.source = is_static ? static_cast<BatchSource*>(&fixed) : &dynamic;
  trainer_options.local = local.get();
  trainer_options.worker = options_.task.index();
  trainer_options.slow_factor = options_.slow_factor;
  trainer_options.clock = options_.clock;
  trainer_options.log = options_.log;
  trainer_options.trace = &trace;
  trainer_options.scales_loss = model->precision() == v1::TrainingConfig::FP16;
  trainer_options.watchdog = watchdog;
  TensorReporter reporter(DescribeTensors(spec, model->lead(), model->backend()));
  trainer_options.tensors = &reporter;
  Trainer trainer(trainer_options);
  RUBATO_RETURN_IF_ERROR(RunTrainer(plan, &client, &trainer, is_static ? nullptr : &dynamic, &timed_trace));
  if (packing.on_device != nullptr) {
    watchdog->Begin("the end");
    StepWatchdog::Watch watch(watchdog, "what codecs have kept back");
    RUBATO_RETURN_IF_ERROR(packing.on_device->FetchResiduals());
  }
  return SaveResiduals(spec, job, residuals);
}

absl::Status WorkerTask::RunTrainer(const v1::Plan& plan, PsClient* client, Trainer* trainer, DynamicSource* dynamic,
                                    TimedTrace* trace) {
  {
    MutexLock lock(mu_);
    client_ = client;
    trainer_ = trainer;
    dynamic_ = dynamic;
    trace_ = trace;
    if (stop_) client->Cancel(ended_.ok() ? absl::CancelledError("the job is over") : ended_);
    if (drain_) trainer->Drain();
  }
  options_.log->Info(absl::StrCat("trains from step ", plan.first_step(), " of plan ", plan.generation(), ", ",
                                  ModeName(plan.mode(), plan.staleness_bound()), " with ", plan.members_size(),
                                  " workers"));
  client->Start(plan);
  absl::Status status = trainer->Run();
  trace->Finish();
  MutexLock lock(mu_);
  drained_ = trainer->drained();
  last_trace_ = trace->last();
  trace_ = nullptr;
  last_progress_ = ProgressLocked();  // For the heartbeat that goes before the goodbye.
  client_ = nullptr;
  trainer_ = nullptr;
  dynamic_ = nullptr;
  return status;
}

absl::Status WorkerTask::RestoreResiduals(const ModelSpec& spec, const v1::JobDescription& job,
                                          const Residuals& residuals) {
  const std::string& from = options_.config.training().start_from();
  if (from.empty()) return absl::OkStatus();
  absl::StatusOr<bool> read = ReadResiduals(from, options_.task.index(), spec, job, residuals);
  if (!read.ok()) return Annotate(read.status(), "training.start_from");
  if (*read) options_.log->Info(absl::StrCat("goes on with what its codecs had kept back in ", from));
  return absl::OkStatus();
}

absl::Status WorkerTask::SaveResiduals(const ModelSpec& spec, const v1::JobDescription& job,
                                       const Residuals& residuals) {
  const std::string directory = JoinPath(options_.config.run_directory(), kLastCheckpoint);
  absl::StatusOr<bool> written = WriteResiduals(directory, options_.task, options_.config, spec, job, residuals);
  if (!written.ok()) return written.status();
  if (*written) options_.log->Info(absl::StrCat("what its codecs have kept back is in ", directory));
  return absl::OkStatus();
}

v1::WorkerProgress WorkerTask::ProgressLocked() {
  if (trainer_ == nullptr) return last_progress_;
  v1::WorkerProgress progress;
  trainer_->Describe(&progress);
  PsClient::Counters counters = client_->counters();
  progress.set_sent_bytes_total(counters.sent_bytes);
  progress.set_received_bytes_total(counters.received_bytes);
  progress.set_non_finite_total(progress.non_finite_total() + counters.non_finite);
  progress.set_waiting_for(counters.waiting_for);
  progress.set_waiting_seconds(absl::ToDoubleSeconds(counters.waiting));
  progress.set_entry_wait_seconds(absl::ToDoubleSeconds(counters.entry_wait));
  progress.set_pushes_total(counters.pushes);
  progress.set_pulls_total(counters.pulls);
  if (progress.examples_total() > 0) {
    const v1::OptimizerConfig& optimizer = options_.config.optimizer();
    progress.set_learning_rate(optimizer.learning_rate() * LearningRateScale(plan_) *
                               ScheduleFactor(optimizer.schedule(), progress.epoch(), progress.step()));
  }
  for (int64_t count : counters.staleness) progress.add_staleness_counts(count);
  return progress;
}

v1::Heartbeat WorkerTask::Heartbeat() {
  v1::Heartbeat heartbeat;
  MutexLock lock(mu_);
  *heartbeat.mutable_progress() = ProgressLocked();
  *heartbeat.mutable_trace() = trace_ == nullptr ? last_trace_ : trace_->last();
  return heartbeat;
}

void WorkerTask::RecordTraceLocked(const v1::RecordTrace& request) {
  if (trace_ != nullptr) return trace_->Record(request);
  last_trace_.Clear();
  last_trace_.set_id(request.id());
  last_trace_.set_error("the worker does not train");
}

void WorkerTask::OnDirective(const v1::Directive& directive) {
  MutexLock lock(mu_);
  switch (directive.body_case()) {
    case v1::Directive::kRegistered:
      waiting_for_ = directive.registered().waiting_for();
      if (!stop_) options_.health->SetServing(true);
      break;
    case v1::Directive::kJob:
      if (!job_.has_value()) job_ = directive.job();
      if (directive.job().has_plan()) plan_ = directive.job().plan();
      break;
    case v1::Directive::kCommit:
      plan_ = directive.commit().plan();
      break;
    case v1::Directive::kShardGrant:
      if (dynamic_ != nullptr) dynamic_->OnGrant(directive.shard_grant());
      break;
    case v1::Directive::kRecordTrace:
      RecordTraceLocked(directive.record_trace());
      break;
    case v1::Directive::kStop: {
      stop_ = true;
      if (absl::Status end = HeedStop(directive.stop(), options_.config, options_.log); !end.ok()) ended_ = end;
      if (client_ != nullptr) client_->Cancel(ended_.ok() ? absl::CancelledError("the job is over") : ended_);
      break;
    }
    default:
      break;
  }
  changed_.NotifyAll();
}

void WorkerTask::Drain() {
  options_.log->Info("asked to stop: finishes its step");
  MutexLock lock(mu_);
  drain_ = true;
  if (trainer_ != nullptr) trainer_->Drain();
  changed_.NotifyAll();
}

void WorkerTask::Cancel(absl::Status why) {
  MutexLock lock(mu_);
  stop_ = true;
  ended_ = why;
  if (client_ != nullptr) client_->Cancel(std::move(why));
  changed_.NotifyAll();
}

}  // namespace rubato::worker
