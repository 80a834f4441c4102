#include "server/tables/row_rule.h"

#include <cmath>

namespace rubato::server {

AdamCorrections::AdamCorrections(double beta1, double beta2) {
  // There is no update 0.
  pairs_.push_back({1, 1});
  double power1 = 1, power2 = 1;
  while (pairs_.size() < kMost) {
    power1 *= beta1;
    power2 *= beta2;
    pairs_.push_back({static_cast<float>(1 / (1 - power1)), static_cast<float>(1 / std::sqrt(1 - power2))});
    if (pairs_.back().first == 1 && pairs_.back().second == 1) return;
  }
}

int StateSize(RowFormula formula, int dimension) {
  switch (formula) {
    case RowFormula::kSgd:
      return 0;
    case RowFormula::kAdaGrad:
      return dimension;
    case RowFormula::kRowWiseAdaGrad:
      return 1;
    case RowFormula::kLazyAdam:
      return 2 * dimension + 1;
    case RowFormula::kFtrl:
      return 2 * dimension;
  }
  return 0;
}

}  // namespace rubato::server
