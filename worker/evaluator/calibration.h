#ifndef RUBATO_WORKER_EVALUATOR_CALIBRATION_H_
#define RUBATO_WORKER_EVALUATOR_CALIBRATION_H_

#include <cstdint>
#include <optional>

namespace rubato::worker {

// How the probabilities that logits of class 1 stand for compare with what happens: their mean, divided by the share of
// examples of class 1. Pure.
class Calibration {
 public:
  // `label` is 0 or 1.
  void Add(float logit, int label);

  // Absent if no example is of class 1, or a logit was NaN.
  std::optional<double> Value() const;

 private:
  double probabilities_ = 0;
  int64_t ones_ = 0;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_EVALUATOR_CALIBRATION_H_
