#ifndef RUBATO_WORKER_DATA_TEXT_HASH_H_
#define RUBATO_WORKER_DATA_TEXT_HASH_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace rubato::worker {

// The hash that keys are made with: FNV-1a (Fowler, Noll and Vo) over numbers, each as one unit, and bytes, then the
// finalizer of MurmurHash3 (Appleby). It is a format (docs/formats.md): a table's rows are found again by it.
class TextHash {
 public:
  void Add(uint64_t number) { hash_ = (hash_ ^ number) * kPrime; }
  void Add(absl::string_view bytes) {
    for (const char byte : bytes) Add(uint64_t{static_cast<unsigned char>(byte)});
  }

  uint64_t Finish() const {
    uint64_t hash = (hash_ ^ (hash_ >> 33)) * 0xff51afd7ed558ccd;
    hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53;
    return hash ^ (hash >> 33);
  }

 private:
  static constexpr uint64_t kPrime = 0x100000001b3;

  uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DATA_TEXT_HASH_H_
