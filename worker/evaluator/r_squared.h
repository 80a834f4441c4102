#ifndef RUBATO_WORKER_EVALUATOR_R_SQUARED_H_
#define RUBATO_WORKER_EVALUATOR_R_SQUARED_H_

#include <cstdint>
#include <optional>
#include <vector>

namespace rubato::worker {

// R2, the coefficient of determination of a regression: 1 minus the squared error divided by that of a model that
// always answers with the labels' mean. Of labels with several elements both are sums over the elements, each with a
// mean of its own. Pure.
class RSquared {
 public:
  // Elements of a label.
  explicit RSquared(int64_t elements) : means_(elements) {}

  // [examples, elements]
  void AddLabels(const float* labels, int64_t examples);

  // `loss_sum`: over all examples that were added, of the mean squared error of one. Absent if the labels are all
  // the same, or something is not finite.
  std::optional<double> Value(double loss_sum) const;

 private:
  int64_t examples_ = 0;
  // So far, and the sum of all elements' squared distances from them (Welford 1962).
  std::vector<double> means_;
  double squares_ = 0;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_EVALUATOR_R_SQUARED_H_
