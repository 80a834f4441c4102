#ifndef RUBATO_WORKER_TRAINER_TEST_UTIL_H_
#define RUBATO_WORKER_TRAINER_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/log.h"
#include "common/trace/trace_recorder.h"
#include "kernels/backend_cpu.h"
#include "worker/device_packer.h"
#include "worker/model_memory.h"
#include "worker/staged_parameters.h"
#include "worker/step_watchdog.h"
#include "worker/trainer.h"

namespace rubato::worker {

// Parameters in process: one worker, plain SGD when a tensor is pushed. Checks that the trainer keeps the protocol.
class FakeParameters : public Parameters {
 public:
  FakeParameters(Model* model, ModelMemory* memory) : model_(model), memory_(memory) {
    step_.generation = 1;
    for (size_t i = 0; i < model->spec().tensors.size(); ++i) {
      at_server_.emplace_back(model->weight(static_cast<int>(i)).elements());
    }
  }

  Step next_step() override {
    step_.plan.set_learning_rate_scale(learning_rate_scale_);
    return step_;
  }
  absl::StatusOr<bool> AwaitTensor(int tensor) override {
    if (moved_) return false;
    EXPECT_EQ(pushed_.size() % model_->spec().tensors.size(), 0u) << "a step was awaited before the last was pushed";
    awaited_.insert(tensor);
    return true;
  }
  void Restart() override {
    EXPECT_TRUE(moved_);
    moved_ = false;
    awaited_.clear();
  }
  absl::StatusOr<bool> BeginStep(Step* step) override {
    if (move_at_ == step_.step) {  // The coordinator moves everybody on.
      move_at_ = -1;
      moved_ = true;
      step_.generation++;
      step_.step += 10;
      return false;
    }
    EXPECT_EQ(awaited_.size(), model_->spec().tensors.size()) << "a step began before its weights were awaited";
    awaited_.clear();
    *step = step_;
    begun_.push_back(step_.step++);
    return true;
  }
  void PushTensor(int tensor, uint64_t examples, double) override {
    pushed_.push_back(tensor);
    if (examples == 0) {
      ++empty_;
      return;
    }
    examples_.push_back(examples);
    float* weight = memory_->Weights(tensor, 0);
    const int64_t elements = model_->weight(tensor).elements();
    std::vector<float> gradient(memory_->Gradient(tensor, 0), memory_->Gradient(tensor, 0) + elements);
    if (packer_ != nullptr) PackAndUnpack(tensor, gradient.data());
    for (int64_t i = 0; i < elements; ++i) weight[i] = at_server_[tensor][i] -= learning_rate_ * gradient[i];
  }
  absl::Status AwaitAcknowledgements() override { return absl::OkStatus(); }

  // From now on gradients are pushed as this packs them. Both outlive it.
  void UsePacker(const v1::JobDescription* job, GradientPacker* packer) {
    job_ = job;
    packer_ = packer;
  }

  float learning_rate_ = 0.5f;
  double learning_rate_scale_ = 1;  // Of the plan.
  int64_t move_at_ = -1;
  int empty_ = 0;
  std::vector<uint64_t> examples_;  // Of each push that is not empty.
  std::vector<int64_t> begun_;
  std::vector<int> pushed_;

 private:
  void PackAndUnpack(int tensor, float* gradient) {
    for (int i = 0; i < job_->chunks_size(); ++i) {
      const v1::ChunkPlacement& placement = job_->chunks(i);
      if (static_cast<int>(placement.tensor()) != tensor || packer_->codec(i) == v1::NONE) continue;
      float* elements = gradient + placement.offset();
      packer_->Pack(i, elements, begun_.back());
      const absl::Span<const uint8_t> message = packer_->Message(i);
      Decode(packer_->codec(i), message.data(), static_cast<int64_t>(message.size()),
             static_cast<int64_t>(placement.length()), elements);
    }
  }

  Model* const model_;
  ModelMemory* const memory_;
  const v1::JobDescription* job_ = nullptr;
  GradientPacker* packer_ = nullptr;
  std::vector<std::vector<float>> at_server_;
  Step step_;
  bool moved_ = false;
  std::set<int> awaited_;
};

// The same batch for `steps` steps: class = whether the first input is positive.
class FakeSource : public BatchSource {
 public:
  explicit FakeSource(int steps) : left_(steps) {
    batch_.examples = 8;
    for (int i = 0; i < 8; ++i) {
      const float x = (i % 2 == 0 ? 1.0f : -1.0f) * (1.0f + 0.1f * i);
      batch_.inputs.insert(batch_.inputs.end(), {x, 0.5f});
      batch_.classes.push_back(x > 0 ? 1 : 0);
    }
  }
  absl::StatusOr<Next> Get(const Parameters::Step&) override {
    if (left_ == 0) return Next{.kind = Kind::kDone};
    if (empty_) return Next{.kind = Kind::kEmpty};
    return Next{Kind::kBatch, &batch_, 0.25, 0.01};
  }
  void Begun() override {
    --left_;
    if (on_begun_ != nullptr) on_begun_();
  }
  void Stopped() override { stopped_ = true; }

  std::function<void()> on_begun_;
  bool stopped_ = false;
  bool empty_ = false;
  Batch batch_;

 private:
  int left_;
};

// `steps` steps of `batches` batches of 8 examples each, all of them different; the last batch of all is half as long.
class StreamSource : public BatchSource {
 public:
  // What it says of the batch after the one at work.
  enum class Ahead {
    kNothing,
    kRight,
    // The right one, and by the time Get gives it, its inputs are gone.
    kRightAndGone,
    // Another one than Get gives.
    kWrong,
  };

  StreamSource(int steps, int batches, Ahead ahead = Ahead::kNothing)
      : steps_(steps), batches_(batches), ahead_(ahead) {}

  absl::StatusOr<Next> Get(const Parameters::Step&) override {
    if (step_ == steps_) return Next{.kind = Kind::kDone};
    batch_ = Make(step_);
    if (ahead_ == Ahead::kRightAndGone && step_ > 0) batch_.inputs.assign(batch_.inputs.size(), 0);
    return Next{Kind::kBatch, &batch_, static_cast<double>(batch_.begin) / 100, 0.01};
  }
  void Begun() override { ++step_; }
  const Batch* Upcoming() override {
    if (ahead_ == Ahead::kNothing || step_ == steps_) return nullptr;
    upcoming_ = Make(ahead_ == Ahead::kWrong ? step_ - 1 : step_);
    return &upcoming_;
  }
  void Stopped() override {}

 private:
  Batch Make(int step) const {
    Batch batch;
    batch.examples = 8 * batches_ - (step + 1 == steps_ ? 4 : 0);
    batch.begin = int64_t{8} * batches_ * step;
    batch.end = batch.begin + batch.examples;
    for (int64_t i = batch.begin; i < batch.end; ++i) {
      const float x = static_cast<float>(i * 37 % 101) / 50.0f - 1;
      batch.inputs.insert(batch.inputs.end(), {x, static_cast<float>(i * 53 % 97) / 97.0f});
      batch.classes.push_back(x > 0.1f ? 1 : 0);
    }
    return batch;
  }

  const int steps_;
  const int batches_;
  const Ahead ahead_;
  int step_ = 0;
  Batch batch_, upcoming_;
};

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
    staged_ = std::make_unique<StagedParameters>(parameters_.get(), &*memory_, device_packer_.get(), backend_.get(),
                                                 watchdog_.get());
  }

  // Instead of the host; the peers have replicas.
  void UseDevice(std::unique_ptr<Backend> device, std::vector<std::unique_ptr<Backend>> peers = {}) {
    // What is on the old backend goes before it.
    device_packer_.reset();
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
    options.trace = &trace_;
    options.scales_loss = scales_loss_;
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
    return status;
  }

  FakeClock clock_;
  Logger log_{"test", &clock_};
  v1::JobConfig config_;
  ModelSpec spec_;
  bool scales_loss_ = false;
  std::unique_ptr<StepWatchdog> watchdog_;
  std::unique_ptr<Backend> backend_;
  std::vector<std::unique_ptr<Backend>> peers_;
  std::unique_ptr<Model> model_;
  std::vector<std::unique_ptr<Model>> peer_models_;
  std::optional<ReplicatedModel> replicated_;
  std::optional<ModelMemory> memory_;
  std::unique_ptr<FakeParameters> parameters_;
  std::unique_ptr<DevicePacker> device_packer_;
  std::unique_ptr<StagedParameters> staged_;
  std::unique_ptr<LocalOptimizer> local_;
  // The one that runs, and whether the last one was drained.
  Trainer* trainer_ = nullptr;
  bool drained_ = false;
  TensorReporter* tensors_ = nullptr;
  TraceRecorder trace_{{.task = "worker 0", .clock = &clock_}};
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TRAINER_TEST_UTIL_H_
