#ifndef RUBATO_SERVER_TABLES_PUSH_COUNTER_H_
#define RUBATO_SERVER_TABLES_PUSH_COUNTER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace rubato::server {

// About how often each of many keys was pushed, in memory that does not grow with them: a count-min sketch (Cormode and
// Muthukrishnan 2005) of one-byte counters, of which a key has four in one cache line, with the conservative update of
// Estan and Varghese (2002). A count is never too low, and too high when the key shares all its counters with more
// frequent ones. With every eighth as many pushes as there are counters all are halved: what is not pushed any more is
// forgotten, and of a hundred keys that are new one or two are taken for one that was there. What it says follows from
// the sequence of pushes alone. Not thread-safe.
class PushCounter {
 public:
  // Counters, a power of two, at least kLine.
  explicit PushCounter(size_t counters) : counters_(counters) {}

  static constexpr size_t kLine = 64;
  static constexpr uint32_t kMost = 255;

  // Counts a push; how often the key with this hash was pushed with it, at most kMost.
  uint32_t Count(uint64_t hash);
  // How often that was until now.
  uint32_t CountOf(uint64_t hash) const;

  // The state, for Restore.
  std::vector<uint64_t> Save() const;
  static size_t SavedWords(size_t counters) { return 1 + counters / sizeof(uint64_t); }
  // REQUIRES: SavedWords of as many counters.
  void Restore(absl::Span<const uint64_t> saved);

 private:
  // Where the key's counters are.
  std::array<size_t, 4> PlacesOf(uint64_t hash) const;
  uint64_t HalvedAfter() const { return counters_.size() / 8; }

  std::vector<uint8_t> counters_;
  // Since the counters were halved.
  uint64_t counted_ = 0;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_TABLES_PUSH_COUNTER_H_
