#ifndef RUBATO_WORKER_TRAINING_TESTING_FAKE_PARAMETERS_H_
#define RUBATO_WORKER_TRAINING_TESTING_FAKE_PARAMETERS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/codec/codec.h"
#include "proto/coordinator.pb.h"
#include "worker/nn/model.h"
#include "worker/ps_client/gradient_encoder.h"
#include "worker/ps_client/model_memory.h"
#include "worker/ps_client/parameters.h"

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
    if (momentum_) step_.plan.set_momentum(*momentum_);
    step_.plan.set_uncompressed(uncompressed_.contains(step_.step));
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
    if (step_.step == cut_at_) {  // A plan begins that has a cut.
      step_.generation++;
      step_.plan.mutable_cut()->set_id(7);
      step_.plan.mutable_cut()->set_name("step" + std::to_string(cut_at_));
    }
    *step = step_;
    begun_.push_back(step_.step++);
    return true;
  }
  void PushTensor(int tensor, const Pushed& pushed) override {
    pushed_.push_back(tensor);
    slices_.push_back(pushed.slice);
    if (pushed.examples == 0) {
      ++empty_;
      return;
    }
    examples_.push_back(pushed.examples);
    float* weight = memory_->Weights(tensor, 0);
    const int64_t elements = model_->weight(tensor).elements();
    std::vector<float> gradient(memory_->Gradient(tensor, 0), memory_->Gradient(tensor, 0) + elements);
    if (encoder_ != nullptr) EncodeAndDecode(tensor, gradient.data());
    pushed_bytes_.append(reinterpret_cast<const char*>(gradient.data()), gradient.size() * sizeof(float));
    for (int64_t i = 0; i < elements; ++i) weight[i] = at_server_[tensor][i] -= learning_rate_ * gradient[i];
  }
  absl::Status AwaitAcknowledgements() override { return absl::OkStatus(); }

  // From now on gradients are pushed as this encodes them. Both outlive it.
  void UseEncoder(const v1::JobDescription* job, GradientEncoder* encoder) {
    job_ = job;
    encoder_ = encoder;
  }

  // What the servers have.
  const std::vector<std::vector<float>>& at_server() const { return at_server_; }
  // They go on from that, with `step`.
  void Resume(const std::vector<std::vector<float>>& at_server, int64_t step) {
    at_server_ = at_server;
    for (size_t i = 0; i < at_server.size(); ++i) {
      std::copy(at_server[i].begin(), at_server[i].end(), memory_->Weights(static_cast<int>(i), 0));
    }
    step_.step = step;
  }

  float learning_rate_ = 0.5f;
  double learning_rate_scale_ = 1;                 // Of the plan.
  std::optional<double> momentum_ = std::nullopt;  // Of the plan.
  std::set<int64_t> uncompressed_;                 // Steps whose plan says so.
  int64_t move_at_ = -1;
  int64_t cut_at_ = -1;
  // Of all gradients that are not empty, as they were sent and as the servers decode them.
  std::string pushed_bytes_;
  int empty_ = 0;
  std::vector<uint64_t> examples_;  // Of each push that is not empty.
  std::vector<int64_t> begun_;
  std::vector<int> pushed_;
  std::vector<v1::ShardSlice> slices_;

 private:
  void EncodeAndDecode(int tensor, float* gradient) {
    for (int i = 0; i < job_->chunks_size(); ++i) {
      const v1::ChunkPlacement& placement = job_->chunks(i);
      if (static_cast<int>(placement.tensor()) != tensor) continue;
      float* elements = gradient + placement.offset();
      encoder_->EncodeChunk(i, elements, begun_.back(), !step_.plan.uncompressed());
      if (encoder_->codec(i) == v1::NONE) continue;
      const absl::Span<const uint8_t> encoded = encoder_->Encoded(i);
      pushed_bytes_.append(reinterpret_cast<const char*>(encoded.data()), encoded.size());
      Decode(encoder_->codec(i), encoded.data(), static_cast<int64_t>(encoded.size()),
             static_cast<int64_t>(placement.length()), elements);
    }
  }

  Model* const model_;
  ModelMemory* const memory_;
  const v1::JobDescription* job_ = nullptr;
  GradientEncoder* encoder_ = nullptr;
  std::vector<std::vector<float>> at_server_;
  Step step_;
  bool moved_ = false;
  std::set<int> awaited_;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TRAINING_TESTING_FAKE_PARAMETERS_H_
