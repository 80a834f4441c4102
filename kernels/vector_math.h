#ifndef RUBATO_KERNELS_VECTOR_MATH_H_
#define RUBATO_KERNELS_VECTOR_MATH_H_

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

}  // namespace rubato::cpu

#endif  // RUBATO_KERNELS_VECTOR_MATH_H_
