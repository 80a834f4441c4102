#ifndef RUBATO_WORKER_EVALUATOR_AUC_H_
#define RUBATO_WORKER_EVALUATOR_AUC_H_

#include <cstdint>
#include <optional>
#include <vector>

namespace rubato::worker {

// The area under the receiver operating characteristic of scores for two classes: the share of pairs of an example of
// either class in which that of class 1 has the higher score; a tie is half a pair (Hanley and McNeil 1982). Counts
// scores by their sign, exponent and first seven digits of the mantissa, so the memory is the same for any number of
// examples.
class Auc {
 public:
  Auc() : counts_{std::vector<int64_t>(kBins), std::vector<int64_t>(kBins)} {}

  // `label` is 0 or 1; any score but NaN, which counts as the lowest.
  void Add(float score, int label) { ++counts_[label][BinOf(score)]; }

  // Absent if all examples are of one class.
  std::optional<double> Value() const;

 private:
  static constexpr int kBinBits = 16;
  static constexpr int kBins = 1 << kBinBits;

  static int BinOf(float score);

  std::vector<int64_t> counts_[2];
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_EVALUATOR_AUC_H_
