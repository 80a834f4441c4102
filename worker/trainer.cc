#include "worker/trainer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/random.h"
#include "common/status.h"

namespace rubato::worker {

// Adds the time between its construction and its end to one of the progress' totals.
class Trainer::Timed {
 public:
  using Setter = void (v1::WorkerProgress::*)(double);
  using Getter = double (v1::WorkerProgress::*)() const;

  Timed(Trainer* trainer, Getter get, Setter set)
      : trainer_(trainer), get_(get), set_(set), begin_(trainer->options_.clock->Now()) {}
  ~Timed() {
    const double seconds = absl::ToDoubleSeconds(trainer_->options_.clock->Now() - begin_);
    MutexLock lock(trainer_->mu_);
    (trainer_->progress_.*set_)((trainer_->progress_.*get_)() + seconds);
  }

 private:
  Trainer* const trainer_;
  const Getter get_;
  const Setter set_;
  const absl::Time begin_;
};

#define RUBATO_TIMED(name) \
  Timed timed(this, &v1::WorkerProgress::name##_seconds_total, &v1::WorkerProgress::set_##name##_seconds_total)

namespace {

// Makes the work in its scope take `factor` times its processor time.
class SlowedDown {
 public:
  SlowedDown(Clock* clock, double factor) : clock_(clock), factor_(factor) {
    if (factor_ > 1) begin_ = ThreadCpuTime();
  }
  ~SlowedDown() {
    if (factor_ > 1) clock_->Sleep((ThreadCpuTime() - begin_) * (factor_ - 1));
  }

 private:
  Clock* const clock_;
  const double factor_;
  absl::Duration begin_;
};

}  // namespace

absl::Status Trainer::Run() {
  for (;;) {
    const absl::Time begin = options_.clock->Now();
    const Parameters::Step step = options_.parameters->next_step();
    BatchSource::Next next;
    {
      RUBATO_TIMED(data);
      RUBATO_ASSIGN_OR_RETURN(next, options_.source->Get(step));
    }
    if (next.kind == BatchSource::Kind::kDone) return options_.parameters->AwaitAcknowledgements();
    absl::StatusOr<Outcome> outcome = next.kind == BatchSource::Kind::kEmpty ? EmptyStep() : ComputeStep(next);
    RUBATO_RETURN_IF_ERROR(outcome.status());
    if (*outcome == Outcome::kMoved) {
      options_.parameters->Restart();
      continue;
    }
    MutexLock lock(mu_);
    step_time_ = options_.clock->Now() - begin;
    progress_.set_steps_total(progress_.steps_total() + 1);
    // A running mean over about the last ten steps.
    const double seconds = absl::ToDoubleSeconds(step_time_);
    progress_.set_mean_step_seconds(progress_.steps_total() == 1 ? seconds
                                                                 : 0.9 * progress_.mean_step_seconds() + 0.1 * seconds);
  }
}

absl::StatusOr<bool> Trainer::AwaitLayer(const LayerSpec& layer) {
  RUBATO_TIMED(pull_wait);
  for (int tensor : layer.tensors) {
    RUBATO_ASSIGN_OR_RETURN(bool there, options_.parameters->AwaitTensor(tensor));
    if (!there) return false;
  }
  return true;
}

absl::StatusOr<bool> Trainer::Begin(Parameters::Step* step) {
  RUBATO_TIMED(pull_wait);
  RUBATO_ASSIGN_OR_RETURN(bool begun, options_.parameters->BeginStep(step));
  if (!begun) return false;
  options_.source->Begun();
  MutexLock lock(mu_);
  progress_.set_step(step->step);
  progress_.set_generation(step->generation);
  return true;
}

absl::StatusOr<Trainer::Outcome> Trainer::EmptyStep() {
  for (const LayerSpec& layer : options_.spec->layers) {
    RUBATO_ASSIGN_OR_RETURN(bool there, AwaitLayer(layer));
    if (!there) return Outcome::kMoved;
  }
  Parameters::Step step;
  RUBATO_ASSIGN_OR_RETURN(bool begun, Begin(&step));
  if (!begun) return Outcome::kMoved;
  PushAllEmpty(0);
  return Outcome::kStepDone;
}

absl::StatusOr<Trainer::Outcome> Trainer::ComputeStep(const BatchSource::Next& next) {
  const Batch& batch = *next.batch;
  const int64_t parts = std::min<int64_t>(options_.config->training().micro_batches(), batch.examples);
  double loss = 0;
  int64_t correct = 0;
  Parameters::Step step = options_.parameters->next_step();
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t begin = batch.examples * part / parts;
    const int64_t end = batch.examples * (part + 1) / parts;
    RUBATO_ASSIGN_OR_RETURN(bool there, Forward(batch, begin, end - begin, static_cast<int>(part), step.step));
    if (!there) return Outcome::kMoved;
    if (part == 0) {
      RUBATO_ASSIGN_OR_RETURN(bool begun, Begin(&step));
      if (!begun) return Outcome::kMoved;
    }
    absl::StatusOr<LossResult> result;
    {
      RUBATO_TIMED(compute);
      SlowedDown slowed(options_.clock, options_.slow_factor);
      result = options_.model->ComputeLoss(1.0f / static_cast<float>(batch.examples));
    }
    RUBATO_RETURN_IF_ERROR(result.status());
    loss += result->loss_sum;
    correct += result->correct;
    if (!std::isfinite(loss)) {
      RUBATO_RETURN_IF_ERROR(OnNonFiniteLoss(loss, step.step, next.epoch));
      return Outcome::kStepDone;
    }
    RUBATO_RETURN_IF_ERROR(Backward(next, part > 0, part + 1 == parts));
  }
  MutexLock lock(mu_);
  progress_.set_examples_total(progress_.examples_total() + batch.examples);
  progress_.set_loss_total(progress_.loss_total() + loss);
  progress_.set_correct_total(progress_.correct_total() + correct);
  progress_.set_epoch(next.epoch);
  return Outcome::kStepDone;
}

absl::StatusOr<bool> Trainer::Forward(const Batch& batch, int64_t begin, int64_t count, int part, int64_t step) {
  Model& model = *options_.model;
  {
    RUBATO_TIMED(data);
    const int64_t input = NumElements(options_.spec->input);
    const int64_t output = NumElements(options_.spec->output);
    if (options_.spec->loss == v1::ModelConfig::SOFTMAX_CROSS_ENTROPY) {
      RUBATO_RETURN_IF_ERROR(model.SetInputs(batch.inputs.data() + begin * input, batch.classes.data() + begin, count));
    } else {
      RUBATO_RETURN_IF_ERROR(
          model.SetInputs(batch.inputs.data() + begin * input, batch.targets.data() + begin * output, count));
    }
  }
  const uint64_t dropout = StreamId("dropout", static_cast<uint64_t>(step), options_.worker * 65536u + part);
  for (size_t l = 0; l < options_.spec->layers.size(); ++l) {
    if (part == 0) {
      RUBATO_ASSIGN_OR_RETURN(bool there, AwaitLayer(options_.spec->layers[l]));
      if (!there) return false;
    }
    RUBATO_TIMED(compute);
    SlowedDown slowed(options_.clock, options_.slow_factor);
    RUBATO_RETURN_IF_ERROR(model.ForwardLayer(static_cast<int>(l), /*training=*/true, dropout));
  }
  return true;
}

absl::Status Trainer::Backward(const BatchSource::Next& next, bool accumulate, bool push) {
  for (int l = static_cast<int>(options_.spec->layers.size()) - 1; l >= 0; --l) {
    {
      RUBATO_TIMED(compute);
      SlowedDown slowed(options_.clock, options_.slow_factor);
      RUBATO_RETURN_IF_ERROR(options_.model->BackwardLayer(l, accumulate));
    }
    if (push) PushLayer(options_.spec->layers[l], next.batch->examples, next.epoch);
  }
  return absl::OkStatus();
}

void Trainer::PushLayer(const LayerSpec& layer, uint64_t examples, double epoch) {
  RUBATO_TIMED(push);
  for (auto tensor = layer.tensors.rbegin(); tensor != layer.tensors.rend(); ++tensor) {
    options_.parameters->PushTensor(*tensor, examples, epoch);
  }
}

void Trainer::PushAllEmpty(double epoch) {
  for (auto layer = options_.spec->layers.rbegin(); layer != options_.spec->layers.rend(); ++layer) {
    PushLayer(*layer, 0, epoch);
  }
}

absl::Status Trainer::OnNonFiniteLoss(double loss, int64_t step, double epoch) {
  std::string what = absl::StrCat("worker ", options_.worker, ", step ", step, ": the loss is ", loss);
  if (options_.config->consistency().on_non_finite() == v1::ConsistencyConfig::STOP_JOB) {
    return absl::OutOfRangeError(absl::StrCat("STOP_JOB: ", what));
  }
  options_.log->Warning(absl::StrCat(what, "; the step is skipped"));
  PushAllEmpty(epoch);
  MutexLock lock(mu_);
  progress_.set_non_finite_total(progress_.non_finite_total() + 1);
  return absl::OkStatus();
}

void Trainer::Describe(v1::WorkerProgress* progress) {
  MutexLock lock(mu_);
  *progress = progress_;
}

}  // namespace rubato::worker
