#include "kernels/codec/codec.h"

#include <cstring>

#include "kernels/codec/half_loops.h"
#include "kernels/codec/int8_loops.h"
#include "kernels/codec/layout.h"
#include "kernels/codec/one_bit_loops.h"
#include "kernels/codec/philox_words.h"
#include "kernels/codec/top_k.h"
#include "kernels/optimizer/all_finite.h"

namespace rubato {
namespace {

// One call of Encode.
struct Encoding {
  v1::Codec codec;
  const float* values;
  int64_t n;
  float* residual;
  uint64_t seed;
  uint64_t stream;
  codec::PhiloxWordsFunction random;
  uint8_t* out;
};

// The codecs that are loops over all elements: not NONE and TOP_K. `data` below is where the range begins.
RUBATO_KERNEL_BODY void EncodeLoops(const Encoding& e) {
  switch (e.codec) {
    case v1::BF16:
      return codec::EncodeBf16(e.values, e.n, e.out);
    case v1::FP16:
      return codec::EncodeFp16(e.values, e.n, e.out);
    case v1::INT8:
      return codec::EncodeInt8(e.random, e.values, e.n, e.seed, e.stream, e.out);
    case v1::ONE_BIT:
      return codec::EncodeOneBit(e.values, e.n, e.residual, e.out);
    default:
      return;
  }
}

RUBATO_KERNEL_BODY void DecodeLoops(v1::Codec codec, const uint8_t* data, int64_t count, float* out) {
  switch (codec) {
    case v1::BF16:
      return codec::DecodeBf16(data, count, out);
    case v1::FP16:
      return codec::DecodeFp16(data, count, out);
    case v1::INT8:
      return codec::DecodeInt8(data, count, out);
    case v1::ONE_BIT:
      return codec::DecodeOneBit(data, count, out);
    default:
      return;
  }
}

RUBATO_KERNEL_BODY bool AllFiniteLoops(v1::Codec codec, const uint8_t* data, int64_t n) {
  switch (codec) {
    case v1::BF16:
      return codec::AllFiniteHalves(data, n, 0x7f80);
    case v1::FP16:
      return codec::AllFiniteHalves(data, n, 0x7c00);
    case v1::INT8:
      return codec::AllFiniteInt8(data, n);
    case v1::ONE_BIT:
      return codec::AllFiniteOneBit(data, n);
    default:
      return true;
  }
}

struct Functions {
  void (*encode)(const Encoding& encoding);
  void (*decode)(v1::Codec codec, const uint8_t* data, int64_t count, float* out);
  bool (*all_finite)(v1::Codec codec, const uint8_t* data, int64_t n);
};

#define RUBATO_CODEC_FUNCTIONS(NAME, TARGET)                                                  \
  TARGET void Encode##NAME(const Encoding& encoding) { EncodeLoops(encoding); }               \
  TARGET void Decode##NAME(v1::Codec codec, const uint8_t* data, int64_t count, float* out) { \
    DecodeLoops(codec, data, count, out);                                                     \
  }                                                                                           \
  TARGET bool AllFinite##NAME(v1::Codec codec, const uint8_t* data, int64_t n) {              \
    return AllFiniteLoops(codec, data, n);                                                    \
  }                                                                                           \
  constexpr Functions k##NAME = {Encode##NAME, Decode##NAME, AllFinite##NAME};

RUBATO_CODEC_FUNCTIONS(Baseline, )
RUBATO_CODEC_FUNCTIONS(Sse42, RUBATO_TARGET_SSE42)
RUBATO_CODEC_FUNCTIONS(Avx2, RUBATO_TARGET_AVX2)
RUBATO_CODEC_FUNCTIONS(Avx512, RUBATO_TARGET_AVX512)

#undef RUBATO_CODEC_FUNCTIONS

const Functions& FunctionsOn(Isa isa) { return *ForIsa(isa, &kBaseline, &kSse42, &kAvx2, &kAvx512); }

Isa Widest() {
  static const Isa best = BestIsa();
  return best;
}

// Where element `begin` is in a message, for the codecs that are loops over all elements.
int64_t ByteOffset(v1::Codec codec, int64_t begin) {
  switch (codec) {
    case v1::BF16:
    case v1::FP16:
      return 2 * begin;
    case v1::INT8:
      return begin / codec::kBlock * codec::kInt8BlockBytes;
    case v1::ONE_BIT:
      return begin / codec::kBlock * codec::kOneBitBlockBytes;
    default:
      return 4 * begin;
  }
}

}  // namespace

int64_t MaxEncodedBytes(const CodecSpec& spec, int64_t n) {
  switch (spec.codec) {
    case v1::BF16:
    case v1::FP16:
      return 2 * n;
    case v1::INT8:
      return codec::Int8Bytes(n);
    case v1::ONE_BIT:
      return codec::OneBitBytes(n);
    case v1::TOP_K:
      return codec::TopKBytes(codec::TopKCount(spec.fraction, n));
    default:
      return 4 * n;
  }
}

bool HasResidual(v1::Codec codec) { return codec == v1::TOP_K || codec == v1::ONE_BIT; }

int64_t EncodeOn(Isa isa, const CodecSpec& spec, const float* values, int64_t n, float* residual, uint64_t seed,
                 uint64_t stream, uint8_t* out) {
  const int64_t bytes = MaxEncodedBytes(spec, n);
  switch (spec.codec) {
    case v1::BF16:
    case v1::FP16:
    case v1::INT8:
    case v1::ONE_BIT:
      FunctionsOn(isa).encode({spec.codec, values, n, residual, seed, stream, codec::PhiloxWordsOn(isa), out});
      break;
    case v1::TOP_K:
      return codec::EncodeTopK(isa, codec::TopKCount(spec.fraction, n), values, n, residual, out);
    default:
      if (n > 0) std::memcpy(out, values, bytes);
  }
  return bytes;
}

bool AllFiniteEncodedOn(Isa isa, v1::Codec codec, const uint8_t* data, int64_t, int64_t n) {
  switch (codec) {
    case v1::BF16:
    case v1::FP16:
    case v1::INT8:
    case v1::ONE_BIT:
      return FunctionsOn(isa).all_finite(codec, data, n);
    case v1::TOP_K: {
      const int64_t sent = codec::LoadU32(data);
      return AllFinite(data + 4 + 4 * sent, sent);
    }
    default:
      return AllFinite(data, n);
  }
}

void DecodeRangeOn(Isa isa, v1::Codec codec, const uint8_t* data, int64_t, int64_t, int64_t begin, int64_t count,
                   float* out) {
  if (count == 0) return;
  switch (codec) {
    case v1::BF16:
    case v1::FP16:
    case v1::INT8:
    case v1::ONE_BIT:
      return FunctionsOn(isa).decode(codec, data + ByteOffset(codec, begin), count, out);
    case v1::TOP_K:
      return codec::DecodeTopK(data, begin, count, out);
    default:
      std::memcpy(out, data + ByteOffset(codec, begin), sizeof(float) * count);
  }
}

int64_t Encode(const CodecSpec& spec, const float* values, int64_t n, float* residual, uint64_t seed, uint64_t stream,
               uint8_t* out) {
  return EncodeOn(Widest(), spec, values, n, residual, seed, stream, out);
}

bool AllFiniteEncoded(v1::Codec codec, const uint8_t* data, int64_t bytes, int64_t n) {
  return AllFiniteEncodedOn(Widest(), codec, data, bytes, n);
}

void Decode(v1::Codec codec, const uint8_t* data, int64_t bytes, int64_t n, float* out) {
  DecodeRange(codec, data, bytes, n, 0, n, out);
}

void DecodeRange(v1::Codec codec, const uint8_t* data, int64_t bytes, int64_t n, int64_t begin, int64_t count,
                 float* out) {
  DecodeRangeOn(Widest(), codec, data, bytes, n, begin, count, out);
}

}  // namespace rubato
