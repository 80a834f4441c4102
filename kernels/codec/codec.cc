#include "kernels/codec/codec.h"

#include "kernels/codec/implementation.h"

namespace rubato {
namespace {

Isa Widest() {
  static const Isa best = BestIsa();
  return best;
}

}  // namespace

int64_t MaxEncodedBytes(const CodecSpec& spec, int64_t n) { return TraitsOf(spec.codec).bytes(spec.fraction, n); }

int64_t EncodeOn(Isa isa, const CodecSpec& spec, const float* values, int64_t n, float* residual, uint64_t seed,
                 uint64_t stream, uint8_t* out) {
  codec::ImplementationOf(spec.codec).On(isa).encode({isa, spec.fraction, values, n, residual, seed, stream, out});
  return MaxEncodedBytes(spec, n);
}

bool AllFiniteEncodedOn(Isa isa, v1::Codec codec, const uint8_t* data, int64_t, int64_t n) {
  return codec::ImplementationOf(codec).On(isa).all_finite(data, n);
}

void DecodeRangeOn(Isa isa, v1::Codec codec, const uint8_t* data, int64_t, int64_t, int64_t begin, int64_t count,
                   float* out) {
  if (count > 0) codec::ImplementationOf(codec).On(isa).decode(data, begin, count, out);
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
