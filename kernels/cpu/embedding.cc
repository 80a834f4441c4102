#include "kernels/cpu/embedding.h"

#include <algorithm>

namespace rubato::cpu {

void Embed(const float* table, int64_t width, const int32_t* indices, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) std::copy_n(table + indices[i] * width, width, y + i * width);
}

void EmbedBackward(const int32_t* indices, int64_t n, const float* dy, int64_t entries, int64_t width, bool accumulate,
                   float* dtable) {
  if (!accumulate) std::fill(dtable, dtable + entries * width, 0.0f);
  for (int64_t i = 0; i < n; ++i) {
    const float* __restrict from = dy + i * width;
    float* __restrict to = dtable + indices[i] * width;
    for (int64_t j = 0; j < width; ++j) to[j] += from[j];
  }
}

}  // namespace rubato::cpu
