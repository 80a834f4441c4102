#ifndef RUBATO_SERVER_TABLES_ROW_RULE_H_
#define RUBATO_SERVER_TABLES_ROW_RULE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/optimizer/update_formula.h"

namespace rubato::server {

// How a row of a table is updated. Unlike a chunk a row is updated only in the steps that have a gradient for it.
enum class RowFormula {
  kSgd,
  // A sum of squared gradients for each weight (Duchi and others 2011), or one of their mean for the whole row.
  kAdaGrad,
  kRowWiseAdaGrad,
  // Adam whose moments stand still while the row has no gradient; t counts the row's own updates.
  kLazyAdam,
  // Follow the regularized leader, by coordinate (McMahan and others 2013).
  kFtrl,
};

// What Adam divides by at a row's t-th update, from t = 1 on; without the power functions of a platform.
class AdamCorrections {
 public:
  AdamCorrections(double beta1, double beta2);

  // 1 / (1 - beta1^t) and 1 / sqrt(1 - beta2^t).
  float first(uint32_t t) const { return At(t).first; }
  float second(uint32_t t) const { return At(t).second; }

 private:
  struct Pair {
    float first, second;
  };
  const Pair& At(uint32_t t) const { return t < pairs_.size() ? pairs_[t] : pairs_.back(); }

  // By t, as far as they differ from 1 in float32, and at most kMost.
  static constexpr size_t kMost = 1 << 20;
  std::vector<Pair> pairs_;
};

// The config's numbers at one moment, in single precision.
struct RowRule {
  // The learning rate, and what else SGD, AdaGrad and Adam read; without Adam's corrections, which differ by row.
  UpdateRule update;
  // kLazyAdam.
  std::shared_ptr<const AdamCorrections> corrections;
  // kFtrl.
  float beta = 1, l1 = 0, l2 = 0;
  // The job's step, for tables that remove rows or round weights at random.
  uint32_t step = 0;
};

// float32 of state that follow the weights of a row.
int StateSize(RowFormula formula, int dimension);

}  // namespace rubato::server

#endif  // RUBATO_SERVER_TABLES_ROW_RULE_H_
