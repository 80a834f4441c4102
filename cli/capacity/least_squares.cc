#include "cli/capacity/least_squares.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>

namespace rubato::capacity {
namespace {

constexpr int kN = LeastSquares::kCoefficients;
using Vector = std::array<double, kN>;
// A pivot under this part of its column is of columns that say the same.
constexpr double kSingular = 1e-9;
// A larger set of coefficients has to be better by this part.
constexpr double kBetter = 1e-9;

struct Normal {
  std::array<Vector, kN> matrix = {};
  Vector right = {};
  double squares = 0;  // Of y.
};

// Coefficients outside of `set` (bits) are 0. Nothing if the equations do not determine the others.
std::optional<Vector> SolveSet(const Normal& normal, unsigned set) {
  std::array<int, kN> columns = {};
  int n = 0;
  for (int i = 0; i < kN; ++i) {
    if ((set >> i & 1u) != 0) columns[static_cast<size_t>(n++)] = i;
  }
  std::array<std::array<double, kN + 1>, kN> a = {};
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) a[i][j] = normal.matrix[columns[i]][columns[j]];
    a[i][n] = normal.right[columns[i]];
  }
  for (int i = 0; i < n; ++i) {
    // Of a symmetric matrix that is not negative, pivots are on the diagonal.
    if (a[i][i] <= kSingular * normal.matrix[columns[i]][columns[i]]) return std::nullopt;
    for (int row = 0; row < n; ++row) {
      if (row == i) continue;
      const double factor = a[row][i] / a[i][i];
      for (int j = i; j <= n; ++j) a[row][j] -= factor * a[i][j];
    }
  }
  Vector solution = {};
  for (int i = 0; i < n; ++i) solution[columns[i]] = a[i][n] / a[i][i];
  return solution;
}

double ErrorOf(const Normal& normal, const Vector& c) {
  double error = normal.squares;
  for (int i = 0; i < kN; ++i) {
    error -= 2 * c[i] * normal.right[i];
    for (int j = 0; j < kN; ++j) error += c[i] * c[j] * normal.matrix[i][j];
  }
  return error;
}

}  // namespace

void LeastSquares::Add(const std::array<double, kCoefficients - 1>& x, double y) {
  observations_.push_back({{1, x[0], x[1]}, y});
}

std::array<double, LeastSquares::kCoefficients> LeastSquares::Solve() const {
  // In units of the largest of each column, so that pivots compare.
  Vector scale = {};
  for (const Observation& one : observations_) {
    for (int i = 0; i < kN; ++i) scale[i] = std::max(scale[i], std::abs(one.x[i]));
  }
  Normal normal;
  for (const Observation& one : observations_) {
    Vector x = {};
    for (int i = 0; i < kN; ++i) x[i] = scale[i] > 0 ? one.x[i] / scale[i] : 0;
    for (int i = 0; i < kN; ++i) {
      for (int j = 0; j < kN; ++j) normal.matrix[i][j] += x[i] * x[j];
      normal.right[i] += x[i] * one.y;
    }
    normal.squares += one.y * one.y;
  }
  std::vector<unsigned> sets;
  for (unsigned set = 1; set < 1u << kN; ++set) sets.push_back(set);
  std::stable_sort(sets.begin(), sets.end(),
                   [](unsigned a, unsigned b) { return std::popcount(a) < std::popcount(b); });
  Vector best = {};
  double least = normal.squares;
  for (unsigned set : sets) {
    const std::optional<Vector> c = SolveSet(normal, set);
    if (!c.has_value() || std::any_of(c->begin(), c->end(), [](double value) { return value < 0; })) continue;
    const double error = ErrorOf(normal, *c);
    if (error >= least - kBetter * normal.squares) continue;
    least = error;
    best = *c;
  }
  for (int i = 0; i < kN; ++i) best[i] = scale[i] > 0 ? best[i] / scale[i] : 0;
  return best;
}

}  // namespace rubato::capacity
