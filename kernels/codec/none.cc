#include <cstring>

#include "kernels/codec/implementation.h"
#include "kernels/optimizer/all_finite.h"

// NONE: float32 as it is.

namespace rubato::codec {
namespace {

constexpr int64_t kBytes = sizeof(float);

void Encode(const Encoding& e) {
  if (e.n > 0) std::memcpy(e.out, e.values, kBytes * e.n);
}

void Decode(const uint8_t* data, int64_t begin, int64_t count, float* out) {
  std::memcpy(out, data + kBytes * begin, kBytes * count);
}

bool AllFiniteFloats(const uint8_t* data, int64_t n) { return AllFinite(data, n); }

// The library's copying finds its instruction set itself.
constexpr Loops kLoops = {Encode, Decode, AllFiniteFloats};

}  // namespace

constinit const Implementation kNone = {kLoops, kLoops, kLoops, kLoops};

}  // namespace rubato::codec
