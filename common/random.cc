#include "common/random.h"

#include <cmath>
#include <numbers>
#include <random>

namespace rubato {

std::array<uint32_t, 4> PhiloxBlock(uint64_t seed, uint64_t stream, uint64_t index) {
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  std::array<uint32_t, 4> c = {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                               static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)};
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t{0xD2511F53u} * c[0];
    uint64_t p1 = uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ key0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ key1, static_cast<uint32_t>(p0)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return c;
}

uint32_t Random::Next32() {
  if (used_ == 4) {
    words_ = PhiloxBlock(seed_, stream_, block_++);
    used_ = 0;
  }
  return words_[used_++];
}

uint64_t Random::Next64() {
  uint64_t low = Next32();
  return low | (uint64_t{Next32()} << 32);
}

uint64_t Random::Below(uint64_t bound) {
  // Draws under this threshold would make the low residues more likely.
  uint64_t threshold = (0 - bound) % bound;
  for (;;) {
    uint64_t draw = Next64();
    if (draw >= threshold) return draw % bound;
  }
}

double Random::Uniform() { return static_cast<double>(Next64() >> 11) * 0x1.0p-53; }

double Random::Normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  double radius = std::sqrt(-2.0 * std::log(1.0 - Uniform()));
  double angle = 2.0 * std::numbers::pi * Uniform();
  spare_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

uint64_t StreamId(const char* purpose, uint64_t a, uint64_t b) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char* p = purpose; *p != '\0'; ++p) hash = (hash ^ static_cast<unsigned char>(*p)) * 0x100000001b3u;
  return SplitMix64(SplitMix64(hash ^ SplitMix64(a)) ^ SplitMix64(b + 1));
}

uint64_t SystemRandom64() {
  std::random_device device;
  for (;;) {
    uint64_t value = (uint64_t{device()} << 32) | device();
    if (value != 0) return value;
  }
}

}  // namespace rubato
