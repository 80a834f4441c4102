#include "worker/training/training_run.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/config/checkpoint_directory.h"
#include "common/config/local_sgd.h"
#include "common/status.h"
#include "common/storage/file.h"
#include "common/task.h"
#include "common/trace/trace_files.h"
#include "worker/ps_client/cut_part.h"
#include "worker/ps_client/host_encoder.h"
#include "worker/ps_client/job_options.h"
#include "worker/ps_client/traffic_progress.h"
#include "worker/ps_client/worker_part.h"
#include "worker/training/prefetch_options.h"
#include "worker/training/static_source.h"

namespace rubato::worker {
namespace {

constexpr char kLastCheckpoint[] = "final";

}  // namespace

TrainingRun::TrainingRun(Options options)
    : options_(std::move(options)),
      slowdown_(options_.slow,
                {.seed = options_.config->seed(),
                 .worker = options_.task.index(),
                 .workers = options_.config->cluster().workers()},
                options_.clock),
      trace_({.task = TaskName(options_.task),
              .task_index = options_.task.index(),
              .clock_offset = options_.clock_offset,
              .clock = options_.clock}),
      timed_trace_({.recorder = &trace_,
                    .clock = options_.clock,
                    .log = options_.log,
                    .directory = TraceDirectory(*options_.config),
                    .file = TraceFile(options_.task)}) {}

TrainingRun::~TrainingRun() {
  // Before any memory goes that they copy from and to.
  options_.model->AwaitDevices();
  // A read that hangs keeps the prefetcher from ending.
  options_.watchdog->Begin("the end");
  StepWatchdog::Watch watch(options_.watchdog, "end of reading", "", StepWatchdog::On::kReader);
  trainer_.reset();
  source_.reset();
  prefetcher_.reset();
}

absl::StatusOr<std::unique_ptr<TrainingRun>> TrainingRun::Create(Options options) {
  std::unique_ptr<TrainingRun> run(new TrainingRun(std::move(options)));
  RUBATO_RETURN_IF_ERROR(run->Prepare());
  return run;
}

absl::Status TrainingRun::Prepare() {
  {
    StepWatchdog::Watch watch(options_.watchdog, "allocate memory for copies");
    RUBATO_ASSIGN_OR_RETURN(memory_, ModelMemory::Create(options_.model->model()));
    if (TrainsLocally(*options_.config)) {
      RUBATO_ASSIGN_OR_RETURN(local_, LocalOptimizer::Create(options_.config->optimizer(), options_.model->lead(),
                                                             options_.model->backend()));
    }
    RUBATO_RETURN_IF_ERROR(CreateEncoder());
  }
  if (options_.model->precision() == v1::TrainingConfig::FP16) {
    scaler_.emplace(options_.config->training().loss_scale());
  }
  carried_.emplace(CarriedState::Options{.job = &options_.job,
                                         .spec = options_.spec,
                                         .encoder = encoder_.get(),
                                         .device_encoder = device_encoder_.get(),
                                         .local = local_.get(),
                                         .scaler = scaler_.has_value() ? &*scaler_ : nullptr,
                                         .backend = options_.model->backend(),
                                         .watchdog = options_.watchdog});
  peers_ =
      MakePartPeers(*options_.config, options_.job, options_.task, options_.security, options_.clock, options_.log);
  options_.cuts->SetPeers(peers_);
  RUBATO_RETURN_IF_ERROR(Restore());
  RUBATO_RETURN_IF_ERROR(CreateSource());
  CreateTrainer();
  return absl::OkStatus();
}

absl::Status TrainingRun::CreateEncoder() {
  const v1::JobConfig& config = *options_.config;
  if (memory_->is_staged()) {
    RUBATO_ASSIGN_OR_RETURN(device_encoder_,
                            DeviceEncoder::Create(options_.job, {.model = options_.model->lead(),
                                                                 .backend = options_.model->backend(),
                                                                 .codecs = PushCodecs(config, *options_.spec),
                                                                 .seed = config.seed(),
                                                                 .worker = options_.task.index()}));
    encoder_ = device_encoder_;
  } else {
    encoder_ =
        std::make_shared<HostEncoder>(options_.job, HostEncoder::Options{.codecs = PushCodecs(config, *options_.spec),
                                                                         .seed = config.seed(),
                                                                         .worker = options_.task.index(),
                                                                         .arena = options_.arena});
  }
  return absl::OkStatus();
}

absl::Status TrainingRun::Restore() {
  StepWatchdog::Watch watch(options_.watchdog, "read the checkpoint", "", StepWatchdog::On::kReader);
  if (options_.job.has_restore()) return Annotate(RestoreCut(options_.job.restore()), "checkpoint to go on from");
  WorkerPart residuals = carried_->RoomForResiduals();
  if (const std::string& from = options_.config->training().start_from(); !from.empty()) {
    const absl::StatusOr<bool> read = ReadWorkerPart(from, options_.task.index(), nullptr, &residuals);
    if (!read.ok()) return Annotate(read.status(), "training.start_from");
    if (*read) options_.log->Info(absl::StrCat("goes on with the error-feedback residuals in ", from));
  }
  return carried_->PutResiduals(residuals);
}

absl::Status TrainingRun::RestoreCut(const v1::Cut& cut) {
  WorkerPart part = carried_->Room();
  RUBATO_ASSIGN_OR_RETURN(const bool read, ReadCutPart({.config = options_.config,
                                                        .cut = &cut,
                                                        .index = options_.task.index(),
                                                        .peers = peers_,
                                                        .cancelled = options_.cancelled,
                                                        .log = options_.log},
                                                       &part));
  return read ? carried_->Put(part) : carried_->PutResiduals(part);  // There are none.
}

absl::Status TrainingRun::CreateSource() {
  const v1::JobConfig& config = *options_.config;
  const int64_t train_examples = options_.dataset->size();
  RUBATO_ASSIGN_OR_RETURN(prefetcher_, Prefetcher::Create(PrefetchOptions(config, options_.dataset, options_.clock)));
  if (config.data().dispatch() == v1::DataConfig::STATIC) {
    source_ = std::make_unique<StaticSource>(
        StaticSource::Options{&config, options_.task, train_examples, prefetcher_.get(), options_.watchdog});
    return absl::OkStatus();
  }
  const auto request = [this](const v1::ShardRequest& request) {
    v1::TaskMessage message;
    *message.mutable_shard_request() = request;
    options_.send(std::move(message));
  };
  auto dynamic = std::make_unique<DynamicSource>(DynamicSource::Options{.config = &config,
                                                                        .worker = options_.task.index(),
                                                                        .train_examples = train_examples,
                                                                        .prefetcher = prefetcher_.get(),
                                                                        .send = request,
                                                                        .clock = options_.clock,
                                                                        .watchdog = options_.watchdog});
  dynamic_ = dynamic.get();
  source_ = std::move(dynamic);
  return absl::OkStatus();
}

void TrainingRun::CreateTrainer() {
  const v1::JobConfig& config = *options_.config;
  WorkerModel* const model = options_.model;

  PsClient::Options client = PsClientOptions(config, *options_.spec);
  client.job = options_.job;
  client.task = options_.task;
  client.security = options_.security;
  client.clock = options_.clock;
  client.log = options_.log;
  client.memory = &*memory_;
  client.arena = options_.arena;
  client.link = options_.link;
  client.trace = &trace_;
  client.encoder = encoder_;
  client_ = std::make_unique<PsClient>(std::move(client));
  if (memory_->is_staged()) {
    staged_ = std::make_unique<StagedParameters>(client_.get(), &*memory_, device_encoder_.get(), model->backend(),
                                                 options_.watchdog);
  }
  reporter_ = std::make_unique<TensorReporter>(
      TensorReporter::Options{.every_steps = config.observability().histogram_every_steps(),
                              .spec = options_.spec,
                              .model = model->lead(),
                              .backend = model->backend(),
                              .is_reporter = options_.is_reporter,
                              .send = [this](v1::TensorReport report) {
                                v1::TaskMessage message;
                                *message.mutable_tensors() = std::move(report);
                                options_.send(std::move(message));
                              }});
  Trainer::Options trainer;
  trainer.config = &config;
  trainer.spec = options_.spec;
  trainer.model = model->model();
  trainer.parameters = staged_ != nullptr ? static_cast<Parameters*>(staged_.get()) : client_.get();
  trainer.source = source_.get();
  trainer.local = local_.get();
  trainer.worker = options_.task.index();
  trainer.slowdown = &slowdown_;
  trainer.clock = options_.clock;
  trainer.log = options_.log;
  trainer.trace = &trace_;
  trainer.scaler = scaler_.has_value() ? &*scaler_ : nullptr;
  trainer.take_cut = [this](const v1::Plan& plan) { return TakeCut(plan); };
  trainer.watchdog = options_.watchdog;
  trainer.tensors = reporter_.get();
  trainer_ = std::make_unique<Trainer>(trainer);
}

absl::Status TrainingRun::Train(const v1::Plan& plan) {
  options_.log->Info(absl::StrCat("trains from step ", plan.first_step(), " of plan ", plan.generation(), ", ",
                                  ModeName(plan.mode(), plan.staleness_bound()), " with ", plan.members_size(),
                                  " workers"));
  client_->Start(plan);
  const absl::Status status = trainer_->Run();
  timed_trace_.Finish();
  return status;
}

absl::Status TrainingRun::SaveResiduals() {
  options_.watchdog->Begin("the end");
  RUBATO_ASSIGN_OR_RETURN(const WorkerPart residuals, carried_->CopyResiduals());
  if (residuals.empty()) return absl::OkStatus();
  v1::CheckpointManifest manifest;
  manifest.set_job_name(options_.config->name());
  manifest.set_servers(options_.config->cluster().servers());
  const std::string directory = JoinPath(CheckpointDirectory(*options_.config), kLastCheckpoint);
  RUBATO_RETURN_IF_ERROR(WriteWorkerPart(directory, options_.task, residuals, std::move(manifest)));
  options_.log->Info(absl::StrCat("its error-feedback residuals are in ", directory));
  return absl::OkStatus();
}

absl::Status TrainingRun::TakeCut(const v1::Plan& plan) {
  RUBATO_ASSIGN_OR_RETURN(WorkerPart part, carried_->Copy());
  options_.cuts->Take(plan, source_->Positions(), std::move(part));
  // Before the source reports a shard that ends with this step or a later one.
  options_.beat();
  return absl::OkStatus();
}

void TrainingRun::OnGrant(const v1::ShardGrant& grant) {
  if (dynamic_ != nullptr) dynamic_->OnGrant(grant);
}

void TrainingRun::Describe(v1::WorkerProgress* progress) {
  trainer_->Describe(progress);
  progress->set_slowed(DescribeSlowed(options_.slow, options_.link.get()));
  AddTraffic(client_->counters(), progress);
}

}  // namespace rubato::worker
