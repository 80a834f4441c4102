#include "bench/apply_loops.h"

namespace rubato::bench {
namespace {

RUBATO_KERNEL_BODY void OneGradient(const Streams& s, float factor) {
  const float* __restrict g = s.gradients[0];
  float* __restrict w = s.weights_out;
  float* __restrict u = s.slots[0];
  float* __restrict v = s.slots[1];
  if (s.slot_count == 0) {
    for (int64_t i = 0; i < s.n; ++i) w[i] += factor * g[i];
  } else if (s.slot_count == 1) {
    for (int64_t i = 0; i < s.n; ++i) {
      u[i] += factor * g[i];
      w[i] += u[i];
    }
  } else {
    for (int64_t i = 0; i < s.n; ++i) {
      u[i] += factor * g[i];
      v[i] += u[i];
      w[i] += v[i];
    }
  }
}

RUBATO_KERNEL_BODY void Apart(const Streams& s, float factor) {
  const float* __restrict g = s.gradients[0];
  const float* __restrict w_in = s.weights_in;
  float* __restrict w = s.weights_out;
  for (int64_t i = 0; i < s.n; ++i) w[i] = w_in[i] + factor * g[i];
}

RUBATO_KERNEL_BODY void TwoGradientsApart(const Streams& s, float factor) {
  const float* __restrict a = s.gradients[0];
  const float* __restrict b = s.gradients[1];
  const float* __restrict w_in = s.weights_in;
  float* __restrict w = s.weights_out;
  float* __restrict u = s.slots[0];
  if (s.slot_count == 0) {
    for (int64_t i = 0; i < s.n; ++i) w[i] = w_in[i] + factor * (a[i] + b[i]);
  } else {
    for (int64_t i = 0; i < s.n; ++i) {
      u[i] += factor * a[i];
      w[i] = w_in[i] + (u[i] + factor * b[i]);
    }
  }
}

RUBATO_KERNEL_BODY void EightGradients(const Streams& s, float factor) {
  const float* __restrict a = s.gradients[0];
  const float* __restrict b = s.gradients[1];
  const float* __restrict c = s.gradients[2];
  const float* __restrict d = s.gradients[3];
  const float* __restrict e = s.gradients[4];
  const float* __restrict f = s.gradients[5];
  const float* __restrict g = s.gradients[6];
  const float* __restrict h = s.gradients[7];
  float* __restrict w = s.weights_out;
  for (int64_t i = 0; i < s.n; ++i) {
    w[i] += factor * (((a[i] + b[i]) + (c[i] + d[i])) + ((e[i] + f[i]) + (g[i] + h[i])));
  }
}

RUBATO_KERNEL_BODY void Move(const Streams& s, float factor) {
  if (s.gradient_count == 8) return EightGradients(s, factor);
  if (s.gradient_count == 2) return TwoGradientsApart(s, factor);
  s.weights_in == s.weights_out ? OneGradient(s, factor) : Apart(s, factor);
}

void MoveBaseline(const Streams& s, float factor) { Move(s, factor); }
RUBATO_TARGET_SSE42 void MoveSse42(const Streams& s, float factor) { Move(s, factor); }
RUBATO_TARGET_AVX2 void MoveAvx2(const Streams& s, float factor) { Move(s, factor); }
RUBATO_TARGET_AVX512 void MoveAvx512(const Streams& s, float factor) { Move(s, factor); }

}  // namespace

void MoveStreams(Isa isa, const Streams& streams, float factor) {
  ForIsa(isa, MoveBaseline, MoveSse42, MoveAvx2, MoveAvx512)(streams, factor);
}

}  // namespace rubato::bench
