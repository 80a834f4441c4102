#ifndef RUBATO_WORKER_TRAINING_TESTING_TRAINER_FIXTURE_H_
#define RUBATO_WORKER_TRAINING_TESTING_TRAINER_FIXTURE_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/log.h"
#include "common/trace/trace_recorder.h"
#include "kernels/cpu/cpu_backend.h"
#include "worker/device/step_watchdog.h"
#include "worker/nn/replicated_model.h"
#include "worker/ps_client/device_encoder.h"
#include "worker/ps_client/model_memory.h"
#include "worker/ps_client/staged_parameters.h"
#include "worker/training/local_optimizer.h"
#include "worker/training/loss_scaler.h"
#include "worker/training/slowdown.h"
#include "worker/training/testing/fake_parameters.h"
#include "worker/training/testing/fake_sources.h"
#include "worker/training/trainer.h"

namespace rubato::worker {

// A trainer of a model of one layer, with servers and a source in process.
class TrainerTest : public testing::Test {
 protected:
  TrainerTest() {
    config_.mutable_training()->set_batch_size(8);
    config_.mutable_training()->set_micro_batches(1);
    config_.mutable_consistency()->set_on_non_finite(v1::ConsistencyConfig::SKIP_STEP);
    v1::ModelConfig* model = config_.mutable_model();
    model->add_input_shape(2);
    model->add_layers()->mutable_linear()->set_units(2);
    model->mutable_layers(0)->set_name("only");
    model->set_loss(v1::ModelConfig::SOFTMAX_CROSS_ENTROPY);
    spec_ = *BuildModelSpec(*model);
    backend_ = *CreateCpuBackend({});
    StartAfresh();
  }

  // A model with zero weights and servers that have the same.
  void StartAfresh() {
    Model::Options options;
    options.max_batch = 8;
    model_ = *Model::Create(spec_, backend_.get(), options);
    std::vector<Replica> replicas = {{model_.get(), backend_.get()}};
    peer_models_.clear();
    for (const std::unique_ptr<Backend>& peer : peers_) {
      peer_models_.push_back(*Model::Create(spec_, peer.get(), options));
      replicas.push_back({peer_models_.back().get(), peer.get()});
    }
    replicated_.emplace(*ReplicatedModel::Create(std::move(replicas)));
    memory_.emplace(*ModelMemory::Create(&*replicated_));
    parameters_ = std::make_unique<FakeParameters>(model_.get(), &*memory_);
    staged_ = std::make_unique<StagedParameters>(parameters_.get(), &*memory_, device_encoder_.get(), backend_.get(),
                                                 watchdog_.get());
  }

  // Instead of the host; the peers have replicas.
  void UseDevice(std::unique_ptr<Backend> device, std::vector<std::unique_ptr<Backend>> peers = {}) {
    // What is on the old backend goes before it.
    device_encoder_.reset();
    local_.reset();
    staged_.reset();
    parameters_.reset();
    memory_.reset();
    replicated_.reset();
    peer_models_.clear();
    model_.reset();
    backend_ = std::move(device);
    peers_ = std::move(peers);
    StartAfresh();
  }

  // A worker of local SGD, whose servers subtract what it pushes.
  void UseLocalSgd(int sync_every) {
    config_.mutable_consistency()->set_sync_every(sync_every);
    if (config_.optimizer().algorithm() == v1::OptimizerConfig::ALGORITHM_UNSPECIFIED) {
      config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::SGD);
    }
    parameters_->learning_rate_ = 1;
    local_ = *LocalOptimizer::Create(config_.optimizer(), model_.get(), backend_.get());
  }

  // As the servers have them.
  std::vector<float> Weights() {
    const float* weight = memory_->Weights(0, 0);
    return std::vector<float>(weight, weight + 4);
  }

  absl::Status Run(BatchSource* source, v1::WorkerProgress* progress) {
    Trainer::Options options;
    options.config = &config_;
    options.spec = &spec_;
    options.model = &*replicated_;
    options.parameters = memory_->is_staged() ? static_cast<Parameters*>(staged_.get()) : parameters_.get();
    options.source = source;
    options.local = local_.get();
    options.slowdown = slowdown_.get();
    options.trace = &trace_;
    std::optional<LossScaler> scaler;
    if (scales_loss_) scaler.emplace(config_.training().loss_scale());
    if (restored_.loss_scale() != 0) {
      EXPECT_TRUE(scaler->Restore(restored_).ok());
    }
    options.scaler = scaler.has_value() ? &*scaler : nullptr;
    scaler_ = options.scaler;
    options.take_cut = take_cut_;
    options.watchdog = watchdog_.get();
    options.tensors = tensors_;
    options.clock = &clock_;
    options.log = &log_;
    Trainer trainer(options);
    trainer_ = &trainer;
    absl::Status status = trainer.Run();
    trainer.Describe(progress);
    drained_ = trainer.drained();
    trainer_ = nullptr;
    scaler_ = nullptr;
    return status;
  }

  FakeClock clock_;
  Logger log_{"test", &clock_};
  v1::JobConfig config_;
  ModelSpec spec_;
  bool scales_loss_ = false;
  // What the loss scaler begins with, if it is not the config's.
  v1::WorkerState restored_;
  std::function<absl::Status(const v1::Plan&)> take_cut_;
  std::unique_ptr<StepWatchdog> watchdog_;
  std::unique_ptr<Backend> backend_;
  std::vector<std::unique_ptr<Backend>> peers_;
  std::unique_ptr<Model> model_;
  std::vector<std::unique_ptr<Model>> peer_models_;
  std::optional<ReplicatedModel> replicated_;
  std::optional<ModelMemory> memory_;
  std::unique_ptr<FakeParameters> parameters_;
  std::unique_ptr<DeviceEncoder> device_encoder_;
  std::unique_ptr<StagedParameters> staged_;
  std::unique_ptr<LocalOptimizer> local_;
  // The one that runs, its loss scaler, if any, and whether the last one was drained.
  Trainer* trainer_ = nullptr;
  LossScaler* scaler_ = nullptr;
  bool drained_ = false;
  TensorReporter* tensors_ = nullptr;
  std::unique_ptr<Slowdown> slowdown_;
  TraceRecorder trace_{{.task = "worker 0", .clock = &clock_}};
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TRAINING_TESTING_TRAINER_FIXTURE_H_
