#ifndef RUBATO_TESTS_EXPLORER_FINGERPRINT_H_
#define RUBATO_TESTS_EXPLORER_FINGERPRINT_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace rubato::explorer {

// 64 bits that stand for what was mixed into them, in its order: the same in every process. Among ten million states
// the chance that one is taken for another is three in a million.
inline uint64_t Mix(uint64_t fingerprint, uint64_t value) {
  // splitmix64's finalizer, of each and of both.
  auto scatter = [](uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  };
  return scatter(fingerprint * 0xd1342543de82ef95u + scatter(value));
}

inline uint64_t Mix(uint64_t fingerprint, absl::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a.
  for (char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return Mix(Mix(fingerprint, text.size()), hash);
}

// Of several values and texts.
template <typename... Values>
uint64_t FingerprintOf(const Values&... values) {
  uint64_t fingerprint = 0;
  ((fingerprint = Mix(fingerprint, values)), ...);
  return fingerprint;
}

}  // namespace rubato::explorer

#endif  // RUBATO_TESTS_EXPLORER_FINGERPRINT_H_
