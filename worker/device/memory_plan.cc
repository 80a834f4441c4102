#include "worker/device/memory_plan.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/config/batch_sizes.h"
#include "common/config/compression.h"
#include "common/config/local_sgd.h"
#include "common/status.h"
#include "kernels/codec/codec.h"
#include "kernels/optimizer/update_rule.h"
#include "kernels/planning_backend.h"
#include "worker/nn/replicated_model.h"

namespace rubato::worker {
namespace {

constexpr int64_t kElementBytes = 4;

int64_t Rounded(int64_t bytes) {
  constexpr int64_t kGranularity = PlanningBackend::kGranularity;
  return (bytes + kGranularity - 1) / kGranularity * kGranularity;
}

// Stays at the largest number if the product would be larger.
int64_t Product(int64_t a, int64_t b) {
  if (a != 0 && b > std::numeric_limits<int64_t>::max() / a) return std::numeric_limits<int64_t>::max();
  return a * b;
}

int64_t LabelElements(const ModelSpec& spec) {
  return spec.has_classes() ? spec.labels_per_example() : NumElements(spec.output);
}

// Adds what encoding a tensor's gradient takes, of a device with memory of its own and of the host.
void AddEncoding(const v1::JobConfig& config, const WorkspaceRules& rules, const TensorSpec& tensor, MemoryPlan* plan) {
  const v1::CodecConfig codec = PushCodec(config, tensor.name);
  if (codec.codec() == v1::NONE) return;
  const int64_t elements = NumElements(tensor.shape);
  const int64_t encoded = MaxEncodedWords({codec.codec(), codec.fraction()}, elements) * kElementBytes;
  const int64_t residual = HasResidual(codec.codec()) ? elements * kElementBytes : 0;
  plan->encoded += Rounded(encoded) + Rounded(residual);
  plan->staging += encoded + residual;
  if (TraitsOf(codec.codec()).gpu != GpuEncoder::kSorting) return;
  const int64_t chunk = std::min(elements, static_cast<int64_t>(config.cluster().chunk_bytes()) / kElementBytes);
  plan->workspace = std::max(plan->workspace, rules.top_k_bytes * chunk);
}

double MiB(int64_t bytes) { return static_cast<double>(bytes) / 0x1p20; }

// `where` is the device.
std::string Describe(const MemoryPlan& plan, absl::string_view where, const DeviceMemory& memory) {
  return absl::StrFormat(
      "needs %.1f MiB of %.1f MiB free on %s (weights %.1f, gradients %.1f, activations %.1f, inputs %.1f, workspace "
      "%.1f, encoded %.1f, exchange %.1f, local updates %.1f) and %.1f MiB on the host (staging %.1f, batches ahead "
      "%.1f)",
      MiB(plan.OnDevice()), MiB(memory.free), where, MiB(plan.weights), MiB(plan.gradients), MiB(plan.activations),
      MiB(plan.inputs), MiB(plan.workspace), MiB(plan.encoded), MiB(plan.exchange), MiB(plan.local), MiB(plan.OnHost()),
      MiB(plan.staging), MiB(plan.batches));
}

// Whether a device with memory of its own has room for a plan, or the host for both parts.
bool Fits(const MemoryPlan& plan, bool staged, const DeviceMemory& memory) {
  const int64_t left = memory.free - plan.OnDevice();
  return left >= (staged ? 0 : plan.OnHost());
}

// 0: none.
absl::StatusOr<int64_t> LargestThatFits(v1::JobConfig config, const ModelSpec& spec, const WorkspaceRules& rules,
                                        bool staged, int gpus, const DeviceMemory& memory) {
  int64_t fits = 0, too_large = config.training().batch_size();
  while (too_large - fits > 1) {
    const int64_t middle = fits + (too_large - fits) / 2;
    config.mutable_training()->set_batch_size(middle);
    RUBATO_ASSIGN_OR_RETURN(const MemoryPlan plan, PlanMemory(config, spec, rules, staged, gpus));
    (Fits(plan, staged, memory) ? fits : too_large) = middle;
  }
  return fits;
}

// The words of a refusal: what sets the batch, what else makes it fit, and what the memory is for.
struct Refusal {
  absl::string_view field;
  absl::string_view otherwise;
  absl::string_view purpose;
};

// As FitMemory.
absl::StatusOr<std::string> Fit(const v1::JobConfig& config, const ModelSpec& spec, Backend* backend, int gpus,
                                const Refusal& refusal) {
  RUBATO_ASSIGN_OR_RETURN(const DeviceTensor probe, backend->Allocate({1}));
  const bool staged = backend->HostPointer(probe) == nullptr;
  RUBATO_ASSIGN_OR_RETURN(const DeviceMemory memory, backend->Memory());
  const WorkspaceRules rules = backend->Workspace();
  RUBATO_ASSIGN_OR_RETURN(const MemoryPlan plan, PlanMemory(config, spec, rules, staged, gpus));
  const std::string line = Describe(plan, backend->Name(), memory);
  if (Fits(plan, staged, memory)) {
    // Others may have taken some since.
    const int64_t workspace = plan.workspace - rules.fixed_bytes;
    RUBATO_RETURN_IF_ERROR(Annotate(backend->Reserve(plan.OnDevice() - plan.workspace, workspace), line));
    return line;
  }
  RUBATO_ASSIGN_OR_RETURN(const int64_t largest, LargestThatFits(config, spec, rules, staged, gpus, memory));
  const std::string allowed = largest == 0 ? "none fits" : absl::StrCat("1 to ", largest, refusal.otherwise);
  return absl::ResourceExhaustedError(absl::StrCat(refusal.field, ": value ", config.training().batch_size(),
                                                   "; allowed: ", allowed, ", because ", refusal.purpose, " ", line));
}

}  // namespace

int64_t LargestMicroBatch(const v1::JobConfig& config, int gpus) {
  const int64_t batch = LargestBatch(config);
  const int64_t micro_batches = std::clamp<int64_t>(config.training().micro_batches(), 1, std::max<int64_t>(batch, 1));
  const int64_t micro_batch = (batch + micro_batches - 1) / micro_batches;
  return (micro_batch + gpus - 1) / gpus;
}

absl::StatusOr<MemoryPlan> PlanMemory(const v1::JobConfig& config, const ModelSpec& spec, const WorkspaceRules& rules,
                                      bool staged, int gpus) {
  const int64_t batch = LargestMicroBatch(config, gpus);
  PlanningBackend backend(rules);
  RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, Model::Create(spec, &backend, {.max_batch = batch}));
  MemoryPlan plan;
  int64_t tensors = 0;
  for (const TensorSpec& tensor : spec.tensors) {
    tensors += NumElements(tensor.shape) * kElementBytes;
    plan.weights += Rounded(NumElements(tensor.shape) * kElementBytes);
  }
  plan.gradients = plan.weights;
  const int64_t input_bytes = batch * NumElements(spec.input) * kElementBytes;
  const int64_t label_bytes = batch * LabelElements(spec) * kElementBytes;
  // Of the batch that is computed with and of the next one.
  plan.inputs = 2 * (Rounded(input_bytes) + Rounded(label_bytes));
  plan.activations = backend.bytes() - plan.weights - plan.gradients - plan.inputs;
  plan.workspace = model->WorkspaceBytes(rules);
  if (staged) {
    plan.staging = 2 * tensors + 2 * gpus * (input_bytes + label_bytes);
    for (const TensorSpec& tensor : spec.tensors) AddEncoding(config, rules, tensor, &plan);
  }
  if (gpus > 1) plan.exchange = 2 * Rounded(ReplicatedModel::ExchangeElements(spec) * kElementBytes);
  plan.workspace += rules.fixed_bytes;
  const int64_t example_bytes = (NumElements(spec.input) + LabelElements(spec)) * kElementBytes;
  const int64_t ahead = static_cast<int64_t>(config.data().prefetch_batches()) + 1;
  plan.batches = Product(Product(ahead, Product(LargestBatch(config), MostBatchesPerStep(config))), example_bytes);
  if (TrainsLocally(config)) {
    // The weights at the step's start, the optimizer's state then and now, and a sum of squares.
    plan.local = (1 + 2 * NumSlots(config.optimizer().algorithm())) * plan.weights + Rounded(sizeof(double));
  }
  return plan;
}

absl::StatusOr<std::string> FitMemory(const v1::JobConfig& config, const ModelSpec& spec, Backend* backend, int gpus) {
  return Fit(config, spec, backend, gpus, {"training.batch_size", ", or more training.micro_batches", "training"});
}

absl::StatusOr<std::string> FitEvaluation(const v1::JobConfig& config, const ModelSpec& spec, Backend* backend) {
  // Of copies on the host it has those of its batches alone; that the plan counts those of weights and gradients too is
  // no reason to refuse it, because if there are copies the host's memory is not compared.
  v1::JobConfig evaluation = config;
  evaluation.mutable_training()->set_batch_size(config.evaluation().batch_size());
  evaluation.mutable_training()->set_micro_batches(1);
  evaluation.mutable_consistency()->clear_sync_every();
  evaluation.mutable_consistency()->clear_policy();
  evaluation.mutable_data()->clear_prefetch_batches();
  evaluation.clear_compression();
  return Fit(evaluation, spec, backend, 1, {"evaluation.batch_size", "", "evaluating"});
}

}  // namespace rubato::worker
