// Time of a step of whole models on a GPU: inputs to the device, forward, loss to the host, backward. Without pulls
// and pushes, which overlap with it, and without the update, which is the servers'. step_torch.py times the same.
// Beside it, what the step takes at least at the rates of a product and a copy that are measured first (step_floor.h).
// In fp16 the loss is scaled by 65536. One line of JSON each, then a table.
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "bench/bench_output.h"
#include "bench/bench_timing.h"
#include "bench/gpu/case_report.h"
#include "bench/gpu/device_flags.h"
#include "bench/gpu/device_timing.h"
#include "bench/gpu/step_floor.h"
#include "bench/gpu/step_models.h"
#include "common/model_spec.h"
#include "common/status.h"
#include "kernels/optimizer/initializer.h"
#include "worker/nn/model.h"

namespace rubato::bench {
namespace {

constexpr uint64_t kSeed = 1;

// A model with initial weights and a batch that stays the same.
class Stepper {
 public:
  static absl::StatusOr<std::unique_ptr<Stepper>> Create(const StepModel& model, float loss_scale, Backend* backend) {
    RUBATO_ASSIGN_OR_RETURN(ModelSpec spec, BuildModelSpec(model.config));
    auto stepper = std::unique_ptr<Stepper>(new Stepper(std::move(spec), model.batch, loss_scale));
    RUBATO_ASSIGN_OR_RETURN(stepper->model_,
                            worker::Model::Create(stepper->spec_, backend, {.max_batch = model.batch}));
    for (int i = 0; i < static_cast<int>(stepper->spec_.tensors.size()); ++i) {
      const DeviceTensor& weight = stepper->model_->weight(i);
      std::vector<float> values(weight.elements());
      InitializeSlice(stepper->spec_.tensors[i], i, kSeed, 0, weight.elements(), values.data());
      RUBATO_RETURN_IF_ERROR(backend->CopyToDevice(weight, 0, weight.elements(), values.data()));
      RUBATO_RETURN_IF_ERROR(backend->Synchronize());
    }
    stepper->FillBatch();
    RUBATO_RETURN_IF_ERROR(stepper->Stage());
    return stepper;
  }

  const ModelSpec& spec() const { return spec_; }

  // Enqueues a step and waits for its loss, not for its gradients; then brings the next batch, as the trainer does.
  absl::Status Step() {
    RUBATO_RETURN_IF_ERROR(model_->BeginStaged());
    for (int l = 0; l < model_->layers(); ++l) RUBATO_RETURN_IF_ERROR(model_->ForwardLayer(l, true, 0));
    RUBATO_RETURN_IF_ERROR(model_->ComputeLoss(loss_scale_ / static_cast<float>(batch_)).status());
    for (int l = model_->layers() - 1; l >= 0; --l) RUBATO_RETURN_IF_ERROR(model_->BackwardLayer(l, false));
    return Stage();
  }

 private:
  Stepper(ModelSpec spec, int64_t batch, float loss_scale)
      : spec_(std::move(spec)), batch_(batch), loss_scale_(loss_scale) {}

  absl::Status Stage() { return model_->StageInputs(inputs_.data(), classes_.data(), batch_); }

  void FillBatch() {
    inputs_ = NormalValues(batch_ * NumElements(spec_.input), kSeed);
    for (size_t i = 0; spec_.vocabulary > 0 && i < inputs_.size(); ++i) {
      inputs_[i] = static_cast<float>(i * 31 % static_cast<size_t>(spec_.vocabulary));
    }
    for (int64_t i = 0; i < batch_ * spec_.labels_per_example(); ++i) {
      classes_.push_back(static_cast<int32_t>(i * 7 % spec_.classes()));
    }
  }

  const ModelSpec spec_;
  const int64_t batch_;
  const float loss_scale_;
  std::unique_ptr<worker::Model> model_;
  std::vector<float> inputs_;
  std::vector<int32_t> classes_;
};

// The figures of a model's step. `rates` are the backend's.
absl::StatusOr<BenchCase> TimeModel(const StepModel& model, const DeviceFlags& flags, const DeviceRates& rates,
                                    Backend* backend) {
  const float loss_scale = flags.precision == "fp16" ? 65536 : 1;
  RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<Stepper> stepper, Stepper::Create(model, loss_scale, backend));
  RUBATO_ASSIGN_OR_RETURN(const double seconds, TimeOperation(
                                                    *backend, [&] { return stepper->Step(); }, flags.timing));
  const double examples = static_cast<double>(model.batch);
  const double floor = StepFloor(stepper->spec(), model.batch, backend->ActivationType(), rates);
  return BenchCase{absl::StrCat(model.name, " ", flags.precision, flags.no_graphs ? " without graphs" : "",
                                flags.no_cudnn ? " without cuDNN" : "",
                                flags.no_fused_attention ? " without fused attention" : "", " on ", backend->Name()),
                   {{"batch", examples},
                    {"step_milliseconds", seconds * 1e3},
                    {"floor_milliseconds", floor * 1e3},
                    {"floor_to_step", floor / seconds},
                    {"examples_per_s", examples / seconds}}};
}

// Fails if there is nothing to measure with.
absl::Status Run(const DeviceFlags& flags, const std::string& only, bool small, CaseReport* report) {
  RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend, CreateBackend(flags));
  RUBATO_ASSIGN_OR_RETURN(const DeviceRates rates, MeasureRates(*backend, flags.timing, small));
  for (const StepModel& model : StepModels(small)) {
    if (!only.empty() && model.name != only) continue;
    const absl::StatusOr<BenchCase> result = TimeModel(model, flags, rates, backend.get());
    if (result.ok()) {
      report->Add(*result);
    } else {
      report->Fail(model.name, result.status());
    }
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  CLI::App app("Times steps of whole models on a device.");
  DeviceFlags flags;
  AddDeviceFlags(&app, &flags);
  std::string model;
  bool small = false;
  app.add_option("--model", model, "mlp, resnet20 or language_model; all if it is absent")
      ->check(CLI::IsMember({"mlp", "resnet20", "language_model"}));
  app.add_flag("--small", small, "narrow models with few layers");
  CLI11_PARSE(app, argc, argv);
  CaseReport report(&std::cout, &std::cerr);
  if (const absl::Status status = Run(flags, model, small, &report); !status.ok()) {
    report.Fail("gpu_step_bench", status);
  }
  return report.Finish();
}

}  // namespace
}  // namespace rubato::bench

int main(int argc, char** argv) { return rubato::bench::Main(argc, argv); }
