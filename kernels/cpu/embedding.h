#ifndef RUBATO_KERNELS_CPU_EMBEDDING_H_
#define RUBATO_KERNELS_CPU_EMBEDDING_H_

#include <cstdint>

// The loops behind Backend::Embed and its gradient, on tables [entries, width] in host memory.
namespace rubato::cpu {

void Embed(const float* table, int64_t width, const int32_t* indices, int64_t n, float* y);
void EmbedBackward(const int32_t* indices, int64_t n, const float* dy, int64_t entries, int64_t width, bool accumulate,
                   float* dtable);

}  // namespace rubato::cpu

#endif  // RUBATO_KERNELS_CPU_EMBEDDING_H_
