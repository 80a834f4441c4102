#ifndef RUBATO_WORKER_EVALUATOR_RECALL_H_
#define RUBATO_WORKER_EVALUATOR_RECALL_H_

#include <cstdint>
#include <optional>

namespace rubato::worker {

// Recall at k where each example has one class that is to be found: the share of examples whose class has one of the k
// largest outputs. Of equal outputs that of the lower class counts as the larger one.
class Recall {
 public:
  explicit Recall(int64_t k) : k_(k) {}

  // Outputs by class, of which `label` is one. An output that is NaN is below all others.
  void Add(const float* outputs, int64_t classes, int32_t label);

  // Absent if there were no examples.
  std::optional<double> Value() const;

 private:
  const int64_t k_;
  int64_t found_ = 0, examples_ = 0;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_EVALUATOR_RECALL_H_
