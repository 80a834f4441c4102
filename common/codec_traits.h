#ifndef RUBATO_COMMON_CODEC_TRAITS_H_
#define RUBATO_COMMON_CODEC_TRAITS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/job_config.pb.h"

// What everybody needs to know of each codec, once. docs/formats.md, "Codecs", has the same table with the layouts;
// kernels/codec has what writes and reads them. All functions are pure.

namespace rubato {

// What a codec's encoder on a GPU (kernels/cuda) needs.
enum class GpuEncoder {
  // There is none: a job with this codec is computed on CPUs.
  kNone,
  // Nothing beside what it reads and writes.
  kPlain,
  // Memory to sort a chunk in (WorkspaceRules::top_k_bytes).
  kSorting,
};

struct CodecTraits {
  // What n elements take when encoded. For a codec with a fraction up to the last bit of fraction * n.
  int64_t (*bytes)(double fraction, int64_t n);
  // Whether a decoded element may be another number than the encoded one.
  bool lossy = true;
  // Error feedback: what encoding loses stays with the sender, n floats, and is added to the next gradient.
  bool has_residual = false;
  // Whether it can carry weights. What a pull loses could not be made up for by the next one.
  bool valid_on_pull = true;
  // If it takes CodecConfig.fraction, the default of that. The encoded bytes then say themselves how long they are. 0:
  // takes none.
  double default_fraction = 0;
  // Whether decoding goes to places that the encoded bytes name: they must be those that were checked.
  bool has_indices = false;
  GpuEncoder gpu = GpuEncoder::kPlain;

  bool takes_fraction() const { return default_fraction > 0; }
};

// CODEC_UNSPECIFIED, and a number that is no codec, are NONE; if they are not allowed, that is checked before.
const CodecTraits& TraitsOf(v1::Codec codec);

inline bool HasResidual(v1::Codec codec) { return TraitsOf(codec).has_residual; }

// Every codec, in the order of the enum, without CODEC_UNSPECIFIED.
std::vector<v1::Codec> AllCodecs();

// "NONE, BF16": the names of the codecs that `is_listed` holds for.
std::string CodecNames(bool (*is_listed)(const CodecTraits&), const char* separator = ", ");

// The range of CodecConfig.fraction, if a codec takes it.
inline bool IsCodecFraction(double fraction) { return fraction > 0 && fraction <= 1; }
inline constexpr char kCodecFractions[] = "more than 0, 1 or less";

// Elements of n that TOP_K sends.
int64_t TopKCount(double fraction, int64_t n);

}  // namespace rubato

#endif  // RUBATO_COMMON_CODEC_TRAITS_H_
