#ifndef RUBATO_CLI_CAPACITY_LEAST_SQUARES_H_
#define RUBATO_CLI_CAPACITY_LEAST_SQUARES_H_

#include <array>
#include <cstdint>
#include <vector>

namespace rubato::capacity {

// Fits y = c[0] + c[1] * x[0] + c[2] * x[1] with coefficients of 0 or more by least squares. Of the few sets of
// coefficients that may be other than 0 each is solved, and the best one without a negative coefficient taken; where
// sets are as good as each other, which what was observed does not tell apart, the one with the fewest coefficients.
// Not thread-safe.
//
//   LeastSquares fit;
//   for (...) fit.Add({chunks, bytes}, seconds);
//   const std::array<double, 3> c = fit.Solve();
class LeastSquares {
 public:
  static constexpr int kCoefficients = 3;

  void Add(const std::array<double, kCoefficients - 1>& x, double y);
  // All 0 if nothing was added.
  std::array<double, kCoefficients> Solve() const;
  int64_t count() const { return static_cast<int64_t>(observations_.size()); }

 private:
  struct Observation {
    std::array<double, kCoefficients> x;
    double y;
  };

  std::vector<Observation> observations_;
};

}  // namespace rubato::capacity

#endif  // RUBATO_CLI_CAPACITY_LEAST_SQUARES_H_
