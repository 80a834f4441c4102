#include "cli/replay/replay_worker.h"

#include <optional>
#include <utility>

#include "cli/replay/recorded_source.h"
#include "cli/replay/replay_parameters.h"
#include "common/config/batch_sizes.h"
#include "common/config/local_sgd.h"
#include "common/status.h"
#include "worker/data/prefetcher.h"
#include "worker/device/worker_model.h"
#include "worker/ps_client/host_encoder.h"
#include "worker/ps_client/job_options.h"
#include "worker/ps_client/model_memory.h"
#include "worker/training/local_optimizer.h"
#include "worker/training/loss_scaler.h"
#include "worker/training/prefetch_options.h"
#include "worker/training/static_source.h"
#include "worker/training/trainer.h"

namespace rubato {

absl::Status TrainRecordedSteps(const ReplayWorkerOptions& options) {
  const v1::JobConfig& config = *options.config;
  const RecordedRun::Member& member = options.run->members[options.member];
  RUBATO_ASSIGN_OR_RETURN(
      const std::unique_ptr<worker::WorkerModel> model,
      worker::WorkerModel::Create(
          {.config = &config, .spec = options.spec, .factory = options.factory, .log = options.log}));
  RUBATO_ASSIGN_OR_RETURN(worker::ModelMemory memory, worker::ModelMemory::Create(model->model()));
  if (memory.is_staged()) {
    return absl::FailedPreconditionError(
        "training.device: a run is replayed where the host reaches the device's memory; use --set training.device=cpu "
        "for one that was trained on the CPU");
  }
  std::unique_ptr<worker::LocalOptimizer> local;
  if (TrainsLocally(config)) {
    RUBATO_ASSIGN_OR_RETURN(local, worker::LocalOptimizer::Create(config.optimizer(), model->lead(), model->backend()));
  }
  std::optional<worker::LossScaler> scaler;
  if (model->precision() == v1::TrainingConfig::FP16) scaler.emplace(config.training().loss_scale());
  worker::HostEncoder encoder(
      *options.job,
      {.codecs = worker::PushCodecs(config, *options.spec), .seed = config.seed(), .worker = member.task.index()});

  const int64_t train_examples = options.dataset->size();
  RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<worker::Prefetcher> prefetcher,
                          worker::Prefetcher::Create(worker::PrefetchOptions(config, options.dataset, options.clock)));
  // Each of the record's batches is one of the prefetcher's, whatever plan it was of.
  prefetcher->SetBatchSize(LargestBatch(config) * MostBatchesPerStep(config));
  std::optional<worker::StaticSource> by_plan;
  if (config.data().dispatch() == v1::DataConfig::STATIC) {
    by_plan.emplace(
        worker::StaticSource::Options{&config, member.task, train_examples, prefetcher.get(), /*watchdog=*/nullptr});
  }
  ReplayParameters parameters({.job = options.job,
                               .model = options.spec,
                               .seed = config.seed(),
                               .run = options.run,
                               .member = options.member,
                               .servers = options.servers,
                               .memory = &memory,
                               .encoder = &encoder});
  RecordedSource source({.config = &config,
                         .member = &member,
                         .train_examples = train_examples,
                         .prefetcher = prefetcher.get(),
                         .by_plan = by_plan.has_value() ? &*by_plan : nullptr,
                         .on_empty = [&parameters] { parameters.AskNothing(); }});
  worker::Trainer trainer({.config = &config,
                           .spec = options.spec,
                           .model = model->model(),
                           .parameters = &parameters,
                           .source = &source,
                           .local = local.get(),
                           .worker = member.task.index(),
                           .clock = options.clock,
                           .log = options.log,
                           .scaler = scaler.has_value() ? &*scaler : nullptr});
  return trainer.Run();
}

}  // namespace rubato
