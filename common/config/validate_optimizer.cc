#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/config/limits.h"
#include "common/config/local_sgd.h"
#include "common/config/validate_parts.h"
#include "common/optimizer_traits.h"

namespace rubato {
namespace {

using Optimizer = v1::OptimizerConfig;

// "ADAM or ADAMW": the algorithms that take a parameter.
std::string Users(const OptimizerParameter& parameter) {
  std::vector<std::string> names;
  for (Optimizer::Algorithm algorithm : AllAlgorithms()) {
    if (TakesParameter(algorithm, parameter)) names.push_back(Optimizer::Algorithm_Name(algorithm));
  }
  const std::string last = names.back();
  names.pop_back();
  return names.empty() ? last : absl::StrCat(absl::StrJoin(names, ", "), " or ", last);
}

// A parameter that is set must be used by the algorithm, and be in range.
void ValidateParameters(const Optimizer& config, ErrorList* errors) {
  for (const OptimizerParameter* parameter : optimizer::kAll) {
    if (!(config.*parameter->is_set)()) continue;
    const std::string path = absl::StrCat("optimizer.", parameter->field);
    const double value = ParameterOf(config, *parameter);
    if (!TakesParameter(config.algorithm(), *parameter)) {
      errors->Add(path, NumberText(value), absl::StrCat("absent unless optimizer.algorithm is ", Users(*parameter)));
    }
    errors->CheckNumber(path, value, parameter->range.holds(value), parameter->range.text);
  }
}

// Of a client's job, or of another one.
std::string AlgorithmNames(bool client) {
  std::vector<std::string> names;
  for (Optimizer::Algorithm algorithm : AllAlgorithms()) {
    const bool is_there = client ? !NeedsWholeTensors(algorithm) : algorithm != Optimizer::MEAN;
    if (is_there) names.push_back(Optimizer::Algorithm_Name(algorithm));
  }
  return absl::StrJoin(names, ", ");
}

void CheckLength(absl::string_view path, double length, ErrorList* errors) {
  errors->CheckNumber(path, length, length > 0, "a number > 0");
}

void CheckFinalFactor(absl::string_view path, double factor, ErrorList* errors) {
  errors->CheckNumber(path, factor, factor >= 0 && factor <= 1, "0 to 1");
}

void ValidateSchedule(const v1::LearningRateSchedule& schedule, ErrorList* errors) {
  if (schedule.unit() != v1::LearningRateSchedule::EPOCHS && schedule.unit() != v1::LearningRateSchedule::STEPS) {
    errors->Add("optimizer.schedule.unit", absl::StrCat(static_cast<int>(schedule.unit())), "EPOCHS, STEPS");
  }
  errors->CheckNumber("optimizer.schedule.warmup", schedule.warmup(), schedule.warmup() >= 0, "a number >= 0");
  switch (schedule.kind_case()) {
    case v1::LearningRateSchedule::kStep:
      CheckLength("optimizer.schedule.step.interval", schedule.step().interval(), errors);
      errors->CheckNumber("optimizer.schedule.step.factor", schedule.step().factor(),
                          schedule.step().factor() > 0 && schedule.step().factor() <= 1, "more than 0, 1 or less");
      break;
    case v1::LearningRateSchedule::kCosine:
      CheckLength("optimizer.schedule.cosine.length", schedule.cosine().length(), errors);
      CheckFinalFactor("optimizer.schedule.cosine.final_factor", schedule.cosine().final_factor(), errors);
      break;
    case v1::LearningRateSchedule::kPolynomial:
      CheckLength("optimizer.schedule.polynomial.length", schedule.polynomial().length(), errors);
      CheckLength("optimizer.schedule.polynomial.power", schedule.polynomial().power(), errors);
      CheckFinalFactor("optimizer.schedule.polynomial.final_factor", schedule.polynomial().final_factor(), errors);
      break;
    case v1::LearningRateSchedule::kConstant:
    case v1::LearningRateSchedule::KIND_NOT_SET:
      break;
  }
}

// Of an algorithm that needs whole tensors: only servers have it, for what workers push as it is.
void CheckWholeTensors(const ModelSpec* model, const v1::JobConfig& config, ErrorList* errors) {
  const std::string name = Optimizer::Algorithm_Name(config.optimizer().algorithm());
  const auto refuse_if = [&](bool condition, absl::string_view why) {
    if (condition) errors->Add("optimizer.algorithm", name, absl::StrCat("another one if ", why));
  };
  refuse_if(config.model().has_manifest(), "the model is a model.manifest");
  refuse_if(TrainsLocally(config), WhyLocal(config));
  const v1::CompensationConfig& compensation = config.consistency().compensation();
  refuse_if(compensation.has_dc_asgd() || compensation.has_gap_aware(),
            "consistency.compensation changes gradients (dc_asgd, gap_aware)");
  if (model == nullptr || model->tensors.empty()) return;
  const auto size = [](const TensorSpec& tensor) { return NumElements(tensor.shape); };
  const TensorSpec& largest = *std::ranges::max_element(model->tensors, {}, size);
  const uint64_t bytes = static_cast<uint64_t>(size(largest)) * sizeof(float);
  refuse_if(bytes > kMaxChunkBytes, absl::StrCat("a tensor is larger than 64 MiB: ", largest.name));
  if (bytes > config.cluster().chunk_bytes() && bytes <= kMaxChunkBytes) {
    errors->Add("cluster.chunk_bytes", absl::StrCat(config.cluster().chunk_bytes()),
                absl::StrCat(bytes, " or more if optimizer.algorithm is ", name, ", as ", largest.name,
                             " has to be one chunk"));
  }
}

}  // namespace

void ValidateOptimizer(const ModelSpec* model, const v1::JobConfig& config, ErrorList* errors) {
  const v1::OptimizerConfig& optimizer = config.optimizer();
  const bool client = config.model().has_manifest();
  if (optimizer.algorithm() == Optimizer::ALGORITHM_UNSPECIFIED ||
      !Optimizer::Algorithm_IsValid(optimizer.algorithm())) {
    errors->Add("optimizer.algorithm", absl::StrCat(static_cast<int>(optimizer.algorithm())), AlgorithmNames(client));
  } else {
    ValidateParameters(optimizer, errors);
  }
  if (optimizer.algorithm() == Optimizer::MEAN && !client) {
    errors->Add("optimizer.algorithm", "MEAN", "another one, unless the model is a model.manifest");
  }
  if (NeedsWholeTensors(optimizer.algorithm())) CheckWholeTensors(model, config, errors);
  const double rate = optimizer.learning_rate();
  errors->CheckNumber("optimizer.learning_rate", rate, rate > 0 || (client && rate == 0),
                      client ? "a number >= 0" : "a number > 0");
  errors->CheckNumber("optimizer.weight_decay", optimizer.weight_decay(), optimizer.weight_decay() >= 0,
                      "a number >= 0");
  ValidateSchedule(optimizer.schedule(), errors);
}

}  // namespace rubato
