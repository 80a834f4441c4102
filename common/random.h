#ifndef RUBATO_COMMON_RANDOM_H_
#define RUBATO_COMMON_RANDOM_H_

#include <array>
#include <cstdint>

namespace rubato {

// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as
// 1, 2, 3"). The i-th block depends on (seed, stream, i) alone, so any part of a stream can be drawn anywhere, in any
// order, by any number of threads, with the same result.
std::array<uint32_t, 4> PhiloxBlock(uint64_t seed, uint64_t stream, uint64_t index);

// A sequential reader of one Philox stream. Not thread-safe; cheap to copy.
//
//   Random random(seed, StreamId("shuffle", epoch));
//   uint64_t i = random.Below(n);
class Random {
 public:
  explicit Random(uint64_t seed, uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  uint32_t Next32();
  uint64_t Next64();
  // Uniform in [0, bound), without bias. bound > 0.
  uint64_t Below(uint64_t bound);
  // Uniform in [0, 1), 53 bits.
  double Uniform();
  // Standard normal (Box and Muller 1958).
  double Normal();

 private:
  uint64_t seed_;
  uint64_t stream_;
  uint64_t block_ = 0;
  int used_ = 4;
  std::array<uint32_t, 4> words_ = {};
  bool has_spare_ = false;
  double spare_ = 0;
};

// Each bit of the input decides about every bit of the output: the last step of splitmix64 (Steele, Lea, Flood 2014).
constexpr uint64_t MixBits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

constexpr uint64_t SplitMix64(uint64_t x) { return MixBits(x + 0x9e3779b97f4a7c15u); }

// Mixes a purpose and numbers into a stream number (FNV-1a over the text, then splitmix64 with each number).
uint64_t StreamId(const char* purpose, uint64_t a = 0, uint64_t b = 0);

// Random non-zero number from the operating system; used for incarnations and fingerprints.
uint64_t SystemRandom64();

}  // namespace rubato

#endif  // RUBATO_COMMON_RANDOM_H_
