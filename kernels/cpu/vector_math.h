#ifndef RUBATO_KERNELS_CPU_VECTOR_MATH_H_
#define RUBATO_KERNELS_CPU_VECTOR_MATH_H_

#include <bit>
#include <cstdint>

// Functions without branches, for loops that the compiler makes vectors of.
namespace rubato::cpu {

// e^x within 2 units in the last place; 0 below -87.3, infinity above 88.7. NaN stays NaN.
inline float FastExp(float x) {
  constexpr float kLow = -87.33654f, kHigh = 88.72283f;
  constexpr float kLog2E = 1.44269504088896341f;
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  // Adding it moves the integer part to the lowest bits of the significand, rounded to nearest.
  constexpr float kRound = 0x1.8p23f;
  // The order of the comparisons lets NaN through.
  float clamped = kHigh < x ? kHigh : x;
  clamped = clamped < kLow ? kLow : clamped;
  const float shifted = clamped * kLog2E + kRound;
  const float n = shifted - kRound;
  const float r = clamped - n * kLn2High - n * kLn2Low;
  // Cephes' polynomial for (e^r - 1 - r) / r^2 on [-ln 2 / 2, ln 2 / 2].
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1;
  // 2^n in two factors, since n may be 128.
  const int32_t exponent = std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRound);
  const int32_t half = exponent >> 1;
  const float result =
      p * std::bit_cast<float>((half + 127) << 23) * std::bit_cast<float>((exponent - half + 127) << 23);
  return x < kLow ? 0.0f : (x > kHigh ? __builtin_inff() : result);
}

// The standard normal distribution's cumulative function, with a relative error under 2e-5 where it is not flushed to 0
// (below -12.9). Chebyshev's fit of erfc by Press et al., "Numerical Recipes" (1992).
inline float NormalCdf(float x) {
  constexpr float kInverseSqrt2 = 0.707106781186547524f;
  const float z = (x < 0 ? -x : x) * kInverseSqrt2;
  const float t = 1 / (1 + 0.5f * z);
  float p = 0.17087277f;
  p = p * t - 0.82215223f;
  p = p * t + 1.48851587f;
  p = p * t - 1.13520398f;
  p = p * t + 0.27886807f;
  p = p * t - 0.18628806f;
  p = p * t + 0.09678418f;
  p = p * t + 0.37409196f;
  p = p * t + 1.00002368f;
  p = p * t - 1.26551223f;
  const float upper = 0.5f * t * FastExp(p - z * z);
  return x < 0 ? upper : 1 - upper;
}

}  // namespace rubato::cpu

#endif  // RUBATO_KERNELS_CPU_VECTOR_MATH_H_
