#ifndef RUBATO_WORKER_TRAINING_TESTING_FAKE_SOURCES_H_
#define RUBATO_WORKER_TRAINING_TESTING_FAKE_SOURCES_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "worker/data/prefetcher.h"
#include "worker/ps_client/parameters.h"
#include "worker/training/batch_source.h"

namespace rubato::worker {

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

  // Begins with step `first`.
  StreamSource(int steps, int batches, Ahead ahead = Ahead::kNothing, int first = 0)
      : steps_(steps), batches_(batches), ahead_(ahead), step_(first) {}

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
  int step_;
  Batch batch_, upcoming_;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TRAINING_TESTING_FAKE_SOURCES_H_
