#include "common/learning_rate_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace rubato {
namespace {

double CosineFactor(const v1::CosineSchedule& cosine, double t) {
  if (t >= cosine.length()) return cosine.final_factor();
  const double falling = 0.5 * (1 + std::cos(std::numbers::pi * t / cosine.length()));
  return falling * (1 - cosine.final_factor()) + cosine.final_factor();
}

double PolynomialFactor(const v1::PolynomialSchedule& polynomial, double t) {
  if (t >= polynomial.length()) return polynomial.final_factor();
  const double power = polynomial.power() == 0 ? 1 : polynomial.power();
  const double falling = std::pow(1 - t / polynomial.length(), power);
  return falling * (1 - polynomial.final_factor()) + polynomial.final_factor();
}

// In the schedule's unit.
double Progress(const v1::LearningRateSchedule& schedule, double epoch, int64_t step) {
  const bool in_steps = schedule.unit() == v1::LearningRateSchedule::STEPS;
  return std::max(0.0, in_steps ? static_cast<double>(step) : epoch);
}

}  // namespace

bool IsWarmUp(const v1::LearningRateSchedule& schedule, double epoch, int64_t step) {
  return Progress(schedule, epoch, step) < schedule.warmup();
}

double ScheduleFactor(const v1::LearningRateSchedule& schedule, double epoch, int64_t step) {
  const double progress = Progress(schedule, epoch, step);
  if (IsWarmUp(schedule, epoch, step)) return progress / schedule.warmup();

  const double t = progress - schedule.warmup();
  switch (schedule.kind_case()) {
    case v1::LearningRateSchedule::kStep:
      return std::pow(schedule.step().factor(), std::floor(t / schedule.step().interval()));
    case v1::LearningRateSchedule::kCosine:
      return CosineFactor(schedule.cosine(), t);
    case v1::LearningRateSchedule::kPolynomial:
      return PolynomialFactor(schedule.polynomial(), t);
    case v1::LearningRateSchedule::kConstant:
    case v1::LearningRateSchedule::KIND_NOT_SET:
      break;
  }
  return 1;
}

}  // namespace rubato
