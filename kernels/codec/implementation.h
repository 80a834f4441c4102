#ifndef RUBATO_KERNELS_CODEC_IMPLEMENTATION_H_
#define RUBATO_KERNELS_CODEC_IMPLEMENTATION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/proto_enum.h"
#include "kernels/optimizer/isa.h"
#include "proto/job_config.pb.h"

// What encodes and decodes with one codec. Each codec has a file of its own, which defines one of the constants
// below; codec.h says what the functions do.

namespace rubato::codec {

// One call of Encode, and the instruction set that it runs on.
struct Encoding {
  Isa isa;
  double fraction;
  const float* values;
  int64_t n;
  float* residual;
  uint64_t seed;
  uint64_t stream;
  uint8_t* out;
};

// On one instruction set.
struct Loops {
  void (*encode)(const Encoding& encoding);
  // Elements [begin, begin + count) of what is encoded at `data`; count > 0.
  void (*decode)(const uint8_t* data, int64_t begin, int64_t count, float* out);
  bool (*all_finite)(const uint8_t* data, int64_t n);
};

struct Implementation {
  const Loops& On(Isa isa) const { return *ForIsa(isa, &baseline, &sse42, &avx2, &avx512); }

  Loops baseline, sse42, avx2, avx512;
  // The encoded bytes, and their length if the codec takes a fraction; others' length has been checked. Null
  // if all bytes are valid.
  absl::Status (*check)(const uint8_t* data, int64_t bytes, int64_t n) = nullptr;
};

extern const Implementation kNone, kBf16, kFp16, kInt8, kTopK, kOneBit;

// CODEC_UNSPECIFIED, and a number that is no codec, are NONE.
inline const Implementation& ImplementationOf(v1::Codec codec) {
  switch (codec) {
    case v1::BF16:
      return kBf16;
    case v1::FP16:
      return kFp16;
    case v1::INT8:
      return kInt8;
    case v1::TOP_K:
      return kTopK;
    case v1::ONE_BIT:
      return kOneBit;
    case v1::NONE:
    case v1::CODEC_UNSPECIFIED:
      RUBATO_NO_VALUE_OF(v1::Codec) : break;
  }
  return kNone;
}

}  // namespace rubato::codec

// Four constants kBaseline, kSse42, kAvx2 and kAvx512: Encode, Decode and AllFinite, which are RUBATO_KERNEL_BODY,
// compiled for each instruction set. To be used in a codec's file, where no name is seen from outside.
#define RUBATO_CODEC_LOOPS                                  \
  RUBATO_CODEC_LOOPS_ON(kBaseline, Baseline, )              \
  RUBATO_CODEC_LOOPS_ON(kSse42, Sse42, RUBATO_TARGET_SSE42) \
  RUBATO_CODEC_LOOPS_ON(kAvx2, Avx2, RUBATO_TARGET_AVX2)    \
  RUBATO_CODEC_LOOPS_ON(kAvx512, Avx512, RUBATO_TARGET_AVX512)

#define RUBATO_CODEC_LOOPS_ON(CONSTANT, NAME, TARGET)                                        \
  TARGET void Encode##NAME(const Encoding& encoding) { Encode(encoding); }                   \
  TARGET void Decode##NAME(const uint8_t* data, int64_t begin, int64_t count, float* out) {  \
    Decode(data, begin, count, out);                                                         \
  }                                                                                          \
  TARGET bool AllFinite##NAME(const uint8_t* data, int64_t n) { return AllFinite(data, n); } \
  constexpr Loops CONSTANT = {Encode##NAME, Decode##NAME, AllFinite##NAME};

#endif  // RUBATO_KERNELS_CODEC_IMPLEMENTATION_H_
