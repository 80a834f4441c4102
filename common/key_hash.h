#ifndef RUBATO_COMMON_KEY_HASH_H_
#define RUBATO_COMMON_KEY_HASH_H_

#include <cstdint>

namespace rubato {

// A secret bijection of 64-bit keys. Where a key's row lies, and in which order keys travel, follows from its hash; as
// no two keys have the same one, it stands for the key. Nobody who does not know the job's secret can choose keys that
// meet. Pure, the same on every platform.
class KeyHash {
 public:
  explicit KeyHash(uint64_t secret) : first_(secret), second_(Mix(secret + kOdd)) {}

  uint64_t Of(uint64_t key) const { return Mix(Mix(key ^ first_) + second_); }
  // The key with this hash.
  uint64_t KeyOf(uint64_t hash) const { return Unmix(Unmix(hash) - second_) ^ first_; }

 private:
  static constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  // The finalizer of MurmurHash3 (Appleby), and the inverses of its factors modulo 2^64.
  static constexpr uint64_t kFirst = 0xff51afd7ed558ccd, kSecond = 0xc4ceb9fe1a85ec53;
  static constexpr uint64_t kFirstInverse = 0x4f74430c22a54005, kSecondInverse = 0x9cb4b2f8129337db;
  static_assert(kFirst * kFirstInverse == 1 && kSecond * kSecondInverse == 1);

  static constexpr uint64_t Mix(uint64_t x) {
    x = (x ^ (x >> 33)) * kFirst;
    x = (x ^ (x >> 33)) * kSecond;
    return x ^ (x >> 33);
  }
  // A shift by more than half of the bits undoes itself.
  static constexpr uint64_t Unmix(uint64_t x) {
    x = (x ^ (x >> 33)) * kSecondInverse;
    x = (x ^ (x >> 33)) * kFirstInverse;
    return x ^ (x >> 33);
  }

  uint64_t first_, second_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_KEY_HASH_H_
