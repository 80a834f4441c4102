#include "server/tables/push_counter.h"

#include <algorithm>
#include <cstring>

namespace rubato::server {

std::array<size_t, 4> PushCounter::PlacesOf(uint64_t hash) const {
  // The first bits of hashes that are counted here may all be the same. An odd factor spreads the others over a word.
  const uint64_t bits = hash * 0x9e3779b97f4a7c15;
  const size_t lines = counters_.size() / kLine;
  const size_t line = kLine * ((bits >> 32) & (lines - 1));
  std::array<size_t, 4> places;
  for (int i = 0; i < 4; ++i) places[i] = line + ((bits >> (6 * i)) ^ (hash >> (6 * i))) % kLine;
  return places;
}

uint32_t PushCounter::CountOf(uint64_t hash) const {
  uint8_t least = kMost;
  for (const size_t place : PlacesOf(hash)) least = std::min(least, counters_[place]);
  return least;
}

uint32_t PushCounter::Count(uint64_t hash) {
  const uint32_t count = std::min(CountOf(hash) + 1, kMost);
  for (const size_t place : PlacesOf(hash)) counters_[place] = std::max(counters_[place], static_cast<uint8_t>(count));
  if (++counted_ == HalvedAfter()) {
    for (uint8_t& counter : counters_) counter /= 2;
    counted_ = 0;
  }
  return count;
}

std::vector<uint64_t> PushCounter::Save() const {
  std::vector<uint64_t> words(SavedWords(counters_.size()));
  words[0] = counted_;
  std::memcpy(words.data() + 1, counters_.data(), counters_.size());
  return words;
}

void PushCounter::Restore(absl::Span<const uint64_t> saved) {
  counted_ = saved[0] % HalvedAfter();
  std::memcpy(counters_.data(), saved.data() + 1, counters_.size());
}

}  // namespace rubato::server
