// Time of a step of whole models on a card: inputs to the device, forward, loss to the host, backward. Without pulls
// and pushes, which overlap with it, and without the update, which is the servers'. step_torch.py times the same.
// Beside it, what the step takes at least at the rates of a product and a copy that are measured first (step_floor.h).
#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "bench/bench_output.h"
#include "bench/bench_timing.h"
#include "bench/gpu/device_timing.h"
#include "bench/gpu/step_floor.h"
#include "bench/gpu/step_models.h"
#include "common/model_spec.h"
#include "common/status.h"
#include "kernels/backend_cpu.h"
#include "kernels/backend_cuda.h"
#include "kernels/optimizer/initializer.h"
#include "worker/nn/model.h"

namespace rubato::bench {
namespace {

constexpr uint64_t kSeed = 1;

const std::map<std::string, MatrixPrecision> kPrecisions = {{"fp32", MatrixPrecision::kFloat32},
                                                            {"tf32", MatrixPrecision::kTf32},
                                                            {"bf16", MatrixPrecision::kBf16},
                                                            {"fp16", MatrixPrecision::kFp16}};

// A model with initial weights and a batch that stays the same.
class Stepper {
 public:
  static absl::StatusOr<std::unique_ptr<Stepper>> Create(const StepModel& model, Backend* backend) {
    RUBATO_ASSIGN_OR_RETURN(ModelSpec spec, BuildModelSpec(model.config));
    auto stepper = std::unique_ptr<Stepper>(new Stepper(std::move(spec), model.batch));
    RUBATO_ASSIGN_OR_RETURN(stepper->model_, Model::Create(stepper->spec_, backend, {.max_batch = model.batch}));
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
    RUBATO_RETURN_IF_ERROR(model_->ComputeLoss(1 / static_cast<float>(batch_)).status());
    for (int l = model_->layers() - 1; l >= 0; --l) RUBATO_RETURN_IF_ERROR(model_->BackwardLayer(l, false));
    return Stage();
  }

 private:
  Stepper(ModelSpec spec, int64_t batch) : spec_(std::move(spec)), batch_(batch) {}

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
  std::unique_ptr<Model> model_;
  std::vector<float> inputs_;
  std::vector<int32_t> classes_;
};

// Milliseconds of a step: the median over rounds of `steps` steps in a row.
absl::StatusOr<double> TimeSteps(Stepper* stepper, Backend* backend, int rounds, int steps) {
  std::vector<double> times;
  for (int round = 0; round <= rounds; ++round) {  // The first one warms up.
    const auto begin = std::chrono::steady_clock::now();
    for (int step = 0; step < steps; ++step) RUBATO_RETURN_IF_ERROR(stepper->Step());
    RUBATO_RETURN_IF_ERROR(backend->Synchronize());
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (round > 0) times.push_back(seconds * 1e3 / steps);
  }
  return Median(times);
}

struct Flags {
  std::string device = "cuda", precision = "fp32", model;
  int rounds = 5, steps = 20;
  bool small = false, no_graphs = false, no_cudnn = false, no_fused_attention = false;
};

absl::Status Run(const Flags& flags) {
  std::unique_ptr<Backend> backend;
  if (flags.device == "cpu") {
    RUBATO_ASSIGN_OR_RETURN(backend, CreateCpuBackend({}));
  } else {
    RUBATO_ASSIGN_OR_RETURN(backend, CreateCudaBackend({.precision = kPrecisions.at(flags.precision),
                                                        .graphs = !flags.no_graphs,
                                                        .cudnn = !flags.no_cudnn,
                                                        .fused_attention = !flags.no_fused_attention}));
  }
  RUBATO_ASSIGN_OR_RETURN(const DeviceRates rates, MeasureRates(*backend, flags.rounds, flags.small));
  std::vector<BenchCase> cases;
  for (const StepModel& model : StepModels(flags.small)) {
    if (!flags.model.empty() && model.name != flags.model) continue;
    absl::StatusOr<std::unique_ptr<Stepper>> stepper = Stepper::Create(model, backend.get());
    if (!stepper.ok()) return Annotate(stepper.status(), model.name);
    absl::StatusOr<double> milliseconds = TimeSteps(stepper->get(), backend.get(), flags.rounds, flags.steps);
    if (!milliseconds.ok()) return Annotate(milliseconds.status(), model.name);
    const double examples = static_cast<double>(model.batch);
    const double floor = StepFloor((*stepper)->spec(), model.batch, backend->ActivationType(), rates) * 1e3;
    cases.push_back({absl::StrCat(model.name, " ", flags.precision, flags.no_graphs ? " without graphs" : "",
                                  flags.no_cudnn ? " without cuDNN" : "",
                                  flags.no_fused_attention ? " without fused attention" : "", " on ", backend->Name()),
                     {{"batch", examples},
                      {"step_milliseconds", *milliseconds},
                      {"floor_milliseconds", floor},
                      {"floor_to_step", floor / *milliseconds},
                      {"examples_per_s", examples / *milliseconds * 1e3}}});
  }
  PrintCases(cases);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  CLI::App app("Times steps of whole models on a device.");
  Flags flags;
  app.add_option("--device", flags.device, "cuda or cpu")->check(CLI::IsMember({"cuda", "cpu"}));
  app.add_option("--precision", flags.precision, "fp32, tf32, bf16 or fp16, on a card")
      ->check(CLI::IsMember({"fp32", "tf32", "bf16", "fp16"}));
  app.add_option("--model", flags.model, "mlp, resnet20 or language_model; all where it is absent")
      ->check(CLI::IsMember({"mlp", "resnet20", "language_model"}));
  app.add_option("--rounds", flags.rounds, "timed rounds")->check(CLI::Range(1, 1000));
  app.add_option("--steps", flags.steps, "steps of a round")->check(CLI::Range(1, 100000));
  app.add_flag("--small", flags.small, "narrow models with few layers");
  app.add_flag("--no-graphs", flags.no_graphs, "every kernel is launched by itself");
  app.add_flag("--no-cudnn", flags.no_cudnn, "convolutions are products of unfolded images");
  app.add_flag("--no-fused-attention", flags.no_fused_attention, "attention's scores go through memory");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = Run(flags);
  if (status.ok()) return 0;
  std::cerr << status.message() << "\n";
  return 1;
}

}  // namespace
}  // namespace rubato::bench

int main(int argc, char** argv) { return rubato::bench::Main(argc, argv); }
