#ifndef RUBATO_KERNELS_CODEC_CODEC_H_
#define RUBATO_KERNELS_CODEC_CODEC_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/codec_traits.h"
#include "kernels/optimizer/isa.h"
#include "proto/job_config.pb.h"

// How a chunk of float32 is encoded. The layouts are in docs/formats.md, "Codecs". CODEC_UNSPECIFIED is
// NONE everywhere. All functions are pure, safe from several threads, and give the same bits on every processor.
//
//   CodecSpec spec = {v1::INT8};
//   std::vector<uint8_t> encoded(MaxEncodedBytes(spec, n));
//   encoded.resize(Encode(spec, gradient, n, nullptr, seed, stream, encoded.data()));
//   RUBATO_RETURN_IF_ERROR(CheckEncoded(v1::INT8, encoded.data(), encoded.size(), n));
//   Decode(v1::INT8, encoded.data(), encoded.size(), n, gradient);
//
// A finite element stays finite through every codec and bytes encoded from elements that are not all finite decodes to
// elements that are not all finite, so that whoever receives it finds out.

namespace rubato {

struct CodecSpec {
  v1::Codec codec = v1::NONE;
  // If the codec takes one (common/codec_traits.h): for TOP_K the part of the elements that is sent.
  double fraction = 0;
};

// What n elements take when encoded, and Encode's `out` must have. Exact, for TOP_K up to the last bit of fraction *
// n.
int64_t MaxEncodedBytes(const CodecSpec& spec, int64_t n);

// The same in words of 4 bytes, rounded up, for memory that is made of words.
inline int64_t MaxEncodedWords(const CodecSpec& spec, int64_t n) { return (MaxEncodedBytes(spec, n) + 3) / 4; }

// Writes n elements to `out`, which overlaps nothing, and returns the bytes written. With a residual (n floats, zero
// before the first chunk; not read otherwise) it is values + residual that are written, and `residual` becomes what
// was lost. If an element of values + residual is not finite, `residual` stays as it was: in the block of 256
// elements for ONE_BIT, everywhere for TOP_K.
//
// INT8 rounds up or down at random (Alistarh et al. 2017, "QSGD"), with probabilities whose expected value is the
// element to within 2^-17 of the distance between two steps. The draws are PhiloxBlock(seed, stream, ...)'s
// (common/random.h); element i's is a function of seed, stream and i.
//
// TOP_K sends exactly max(1, ceil(fraction * n)) elements, those of largest magnitude (infinities and then NaN are the
// largest), of equal ones those with the lowest indices; none for n = 0. n < 2^32.
int64_t Encode(const CodecSpec& spec, const float* values, int64_t n, float* residual, uint64_t seed, uint64_t stream,
               uint8_t* out);

// Whether the bytes, from anywhere and of any alignment, encode n elements. The functions below take only
// those that are. InvalidArgument: an unknown codec, a wrong length ("encoded_bytes: ..."), or contents that no sender
// makes ("payload: ...": TOP_K's count and indices, ONE_BIT's unused bits).
absl::Status CheckEncoded(v1::Codec codec, const uint8_t* data, int64_t bytes, int64_t n);

// Whether every decoded element, and every scale, is finite.
bool AllFiniteEncoded(v1::Codec codec, const uint8_t* data, int64_t bytes, int64_t n);

// Writes the n elements to `out`.
void Decode(v1::Codec codec, const uint8_t* data, int64_t bytes, int64_t n, float* out);

// Writes elements [begin, begin + count) to out[0], out[1], ... `begin` is a multiple of 256. For decoding piece by
// piece into the first-level cache.
void DecodeRange(v1::Codec codec, const uint8_t* data, int64_t bytes, int64_t n, int64_t begin, int64_t count,
                 float* out);

// The same on a given instruction set, which this processor supports; for tests and benchmarks.
int64_t EncodeOn(Isa isa, const CodecSpec& spec, const float* values, int64_t n, float* residual, uint64_t seed,
                 uint64_t stream, uint8_t* out);
void DecodeRangeOn(Isa isa, v1::Codec codec, const uint8_t* data, int64_t bytes, int64_t n, int64_t begin,
                   int64_t count, float* out);
bool AllFiniteEncodedOn(Isa isa, v1::Codec codec, const uint8_t* data, int64_t bytes, int64_t n);

}  // namespace rubato

#endif  // RUBATO_KERNELS_CODEC_CODEC_H_
