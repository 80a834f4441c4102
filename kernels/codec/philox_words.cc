#include "kernels/codec/philox_words.h"

#include <cstring>

#include "common/random.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rubato::codec {
namespace {

#if defined(__x86_64__)

// Philox lives on products of two 32-bit words, 64 bits wide. The instruction for them takes the lower halves of 64-bit
// lanes and ignores the upper ones, so a word may have anything in its upper half and need not be masked. Of each
// vector of block numbers, v[0] holds the even blocks and v[1] the odd ones. Compilers do not find this form from plain
// loops: it is 2 to 3 times as fast as theirs.
//
// A macro, because a template cannot take the intrinsics of an instruction set that it is not itself compiled for.
#define RUBATO_PHILOX_WORDS(NAME, TARGET, Vector, MULTIPLY)                                                    \
  TARGET void NAME(uint64_t seed, uint64_t stream, uint64_t group, PhiloxWords& out) {                         \
    constexpr uint64_t kLow = 0xffffffffu;                                                                     \
    constexpr int kBlocks = sizeof(Vector) / 4;                                                                \
    const uint64_t first = group * 32;                                                                         \
    const Vector zero = {}, multiplier0 = zero + 0xD2511F53u, multiplier1 = zero + 0xCD9E8D57u;                \
    Vector numbers = {};                                                                                       \
    for (int lane = 0; lane < kBlocks / 2; ++lane) {                                                           \
      numbers[lane] = ((first & kLow) + 2 * lane) | ((first & kLow) + 2 * lane + 1) << 32;                     \
    }                                                                                                          \
    for (int block = 0; block < 32; block += kBlocks) {                                                        \
      Vector v0[2] = {numbers, numbers >> 32};                                                                 \
      Vector v1[2] = {zero + (first >> 32), zero + (first >> 32)};                                             \
      Vector v2[2] = {zero + (stream & kLow), zero + (stream & kLow)};                                         \
      Vector v3[2] = {zero + (stream >> 32), zero + (stream >> 32)};                                           \
      uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);                   \
      for (int round = 0; round < 10; ++round) {                                                               \
        for (int odd = 0; odd < 2; ++odd) {                                                                    \
          const Vector product0 = MULTIPLY(multiplier0, v0[odd]), product1 = MULTIPLY(multiplier1, v2[odd]);   \
          v0[odd] = (product1 >> 32) ^ v1[odd] ^ (zero + key0);                                                \
          v1[odd] = product1;                                                                                  \
          v2[odd] = (product0 >> 32) ^ v3[odd] ^ (zero + key1);                                                \
          v3[odd] = product0;                                                                                  \
        }                                                                                                      \
        key0 += 0x9E3779B9u;                                                                                   \
        key1 += 0xBB67AE85u;                                                                                   \
      }                                                                                                        \
      const Vector words[4] = {(v0[0] & kLow) | v0[1] << 32, (v1[0] & kLow) | v1[1] << 32,                     \
                               (v2[0] & kLow) | v2[1] << 32, (v3[0] & kLow) | v3[1] << 32};                    \
      for (int word = 0; word < 4; ++word) std::memcpy(&out.words[word][block], &words[word], sizeof(Vector)); \
      numbers += kBlocks | uint64_t{kBlocks} << 32;                                                            \
    }                                                                                                          \
  }

using Vector128 = uint64_t __attribute__((vector_size(16)));
using Vector256 = uint64_t __attribute__((vector_size(32)));
using Vector512 = uint64_t __attribute__((vector_size(64)));

#define RUBATO_MULTIPLY128(a, b) (Vector128) _mm_mul_epu32((__m128i)(a), (__m128i)(b))
#define RUBATO_MULTIPLY256(a, b) (Vector256) _mm256_mul_epu32((__m256i)(a), (__m256i)(b))
// The masked form, with all lanes: GCC 12 warns of an uninitialised variable inside the other.
#define RUBATO_MULTIPLY512(a, b) (Vector512) _mm512_maskz_mul_epu32(0xff, (__m512i)(a), (__m512i)(b))

RUBATO_PHILOX_WORDS(FillBaseline, , Vector128, RUBATO_MULTIPLY128)
RUBATO_PHILOX_WORDS(FillAvx2, RUBATO_TARGET_AVX2, Vector256, RUBATO_MULTIPLY256)
RUBATO_PHILOX_WORDS(FillAvx512, RUBATO_TARGET_AVX512, Vector512, RUBATO_MULTIPLY512)

#undef RUBATO_MULTIPLY128
#undef RUBATO_MULTIPLY256
#undef RUBATO_MULTIPLY512
#undef RUBATO_PHILOX_WORDS

#else

void FillBaseline(uint64_t seed, uint64_t stream, uint64_t group, PhiloxWords& out) {
  for (int block = 0; block < 32; ++block) {
    const std::array<uint32_t, 4> words = PhiloxBlock(seed, stream, group * 32 + block);
    for (int word = 0; word < 4; ++word) out.words[word][block] = words[word];
  }
}

#endif

}  // namespace

PhiloxWordsFunction PhiloxWordsOn(Isa isa) {
#if defined(__x86_64__)
  return ForIsa(isa, FillBaseline, FillBaseline, FillAvx2, FillAvx512);
#else
  static_cast<void>(isa);
  return FillBaseline;
#endif
}

}  // namespace rubato::codec
