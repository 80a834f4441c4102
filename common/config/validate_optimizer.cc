#include "absl/strings/str_cat.h"
#include "common/config/validate_parts.h"

namespace rubato {
namespace {

using Optimizer = v1::OptimizerConfig;

// A parameter that is set must be used by the algorithm, and be in range.
void CheckParameter(absl::string_view path, bool is_set, double value, bool used, absl::string_view users, bool good,
                    absl::string_view allowed, ErrorList* errors) {
  if (!is_set) return;
  if (!used) errors->Add(path, NumberText(value), absl::StrCat("absent unless optimizer.algorithm is ", users));
  errors->CheckNumber(path, value, good, allowed);
}

bool IsFraction(double value) { return value >= 0 && value < 1; }

void ValidateParameters(const Optimizer& optimizer, ErrorList* errors) {
  const Optimizer::Algorithm algorithm = optimizer.algorithm();
  const bool momentum = algorithm == Optimizer::MOMENTUM || algorithm == Optimizer::NESTEROV;
  const bool adam = algorithm == Optimizer::ADAM || algorithm == Optimizer::ADAMW;
  const bool adagrad = algorithm == Optimizer::ADAGRAD;
  const bool rmsprop = algorithm == Optimizer::RMSPROP;
  constexpr char kFraction[] = "0 or more, less than 1";
  CheckParameter("optimizer.momentum", optimizer.has_momentum(), optimizer.momentum(), momentum, "MOMENTUM or NESTEROV",
                 IsFraction(optimizer.momentum()), kFraction, errors);
  CheckParameter("optimizer.beta1", optimizer.has_beta1(), optimizer.beta1(), adam, "ADAM or ADAMW",
                 IsFraction(optimizer.beta1()), kFraction, errors);
  CheckParameter("optimizer.beta2", optimizer.has_beta2(), optimizer.beta2(), adam, "ADAM or ADAMW",
                 IsFraction(optimizer.beta2()), kFraction, errors);
  CheckParameter("optimizer.rho", optimizer.has_rho(), optimizer.rho(), rmsprop, "RMSPROP", IsFraction(optimizer.rho()),
                 kFraction, errors);
  CheckParameter("optimizer.epsilon", optimizer.has_epsilon(), optimizer.epsilon(), adam || adagrad || rmsprop,
                 "ADAGRAD, RMSPROP, ADAM or ADAMW", optimizer.epsilon() > 0, "a number > 0", errors);
  CheckParameter("optimizer.initial_accumulator", optimizer.has_initial_accumulator(), optimizer.initial_accumulator(),
                 adagrad, "ADAGRAD", optimizer.initial_accumulator() >= 0, "a number >= 0", errors);
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

}  // namespace

void ValidateOptimizer(const v1::OptimizerConfig& optimizer, ErrorList* errors) {
  if (optimizer.algorithm() == Optimizer::ALGORITHM_UNSPECIFIED ||
      !Optimizer::Algorithm_IsValid(optimizer.algorithm())) {
    errors->Add("optimizer.algorithm", absl::StrCat(static_cast<int>(optimizer.algorithm())),
                "SGD, MOMENTUM, NESTEROV, ADAGRAD, RMSPROP, ADAM, ADAMW");
  } else {
    ValidateParameters(optimizer, errors);
  }
  errors->CheckNumber("optimizer.learning_rate", optimizer.learning_rate(), optimizer.learning_rate() > 0,
                      "a number > 0");
  errors->CheckNumber("optimizer.weight_decay", optimizer.weight_decay(), optimizer.weight_decay() >= 0,
                      "a number >= 0");
  ValidateSchedule(optimizer.schedule(), errors);
}

}  // namespace rubato
