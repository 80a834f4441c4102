#include "common/straggler/draws.h"

#include <algorithm>
#include <cmath>

namespace rubato {
namespace {

// Uniform in (0, 1]: it has a logarithm.
double UniformAboveZero(Random* random) { return 1.0 - random->Uniform(); }

// Gamma-distributed with that shape, >= 1, and scale 1.
double DrawGammaOfShape(double shape, Random* random) {
  const double d = shape - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  for (;;) {
    const double x = random->Normal();
    const double cube_root = 1.0 + c * x;
    const double u = UniformAboveZero(random);
    if (cube_root <= 0) continue;
    const double v = cube_root * cube_root * cube_root;
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

}  // namespace

double DrawExponential(Random* random) { return -std::log(UniformAboveZero(random)); }

double DrawPareto(double shape, Random* random) {
  return std::min(kParetoLimit, std::pow(UniformAboveZero(random), -1.0 / shape));
}

double DrawGamma(double variation, Random* random) {
  const double shape = 1.0 / (variation * variation);
  if (shape >= 1) return DrawGammaOfShape(shape, random) / shape;
  // One of a shape higher by 1, times a power of a uniform number.
  const double power = std::pow(UniformAboveZero(random), 1.0 / shape);
  return DrawGammaOfShape(shape + 1, random) * power / shape;
}

int64_t DrawLogUniform(int64_t low, int64_t high, Random* random) {
  const double from = std::log(static_cast<double>(low)), to = std::log(static_cast<double>(high) + 1);
  return std::clamp(static_cast<int64_t>(std::exp(from + random->Uniform() * (to - from))), low, high);
}

int64_t DrawFailures(double probability, Random* random) {
  const double u = UniformAboveZero(random);
  return probability >= 1 ? 0 : static_cast<int64_t>(std::log(u) / std::log1p(-probability));
}

}  // namespace rubato
