#include "cli/report/statistics/student_t.h"

#include <cmath>
#include <numbers>

namespace rubato {

double NormalCdf(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

double StudentCdf(double x, int degrees_of_freedom) {
  const double angle = std::atan(x / std::sqrt(degrees_of_freedom));
  const double squared_cosine = std::pow(std::cos(angle), 2);
  const bool is_odd = degrees_of_freedom % 2 == 1;
  double term = is_odd ? std::cos(angle) : 1;
  double sum = degrees_of_freedom == 1 ? 0 : term;
  for (int i = is_odd ? 3 : 2; i < degrees_of_freedom; i += 2) {
    term *= squared_cosine * (i - 1) / i;
    sum += term;
  }
  const double within =
      is_odd ? 2 / std::numbers::pi * (angle + std::sin(angle) * sum) : std::sin(angle) * sum;  // Of [-x, x].
  return 0.5 + within / 2;
}

double StudentQuantile(double probability, int degrees_of_freedom) {
  double low = 0, high = 1;
  while (StudentCdf(high, degrees_of_freedom) < probability) high *= 2;
  while (true) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) return middle;
    (StudentCdf(middle, degrees_of_freedom) < probability ? low : high) = middle;
  }
}

}  // namespace rubato
