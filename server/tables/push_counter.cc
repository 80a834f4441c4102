#include "server/tables/push_counter.h"

#include <algorithm>
#include <cstring>

namespace rubato::server {

uint32_t PushCounter::Count(uint64_t hash) {
  // The first bits of hashes that are counted here may all be the same. An odd factor spreads the others over a word.
  const uint64_t bits = hash * 0x9e3779b97f4a7c15;
  const size_t lines = counters_.size() / kLine;
  uint8_t* const line = counters_.data() + kLine * ((bits >> 32) & (lines - 1));
  uint8_t* own[4];
  for (int i = 0; i < 4; ++i) own[i] = line + ((bits >> (6 * i)) ^ (hash >> (6 * i))) % kLine;
  const uint8_t least = std::min(std::min(*own[0], *own[1]), std::min(*own[2], *own[3]));
  if (least < kMost) {
    for (uint8_t* counter : own) *counter = std::max<uint8_t>(*counter, least + 1);
  }
  if (++counted_ == HalvedAfter()) {
    for (uint8_t& counter : counters_) counter /= 2;
    counted_ = 0;
  }
  return std::min<uint32_t>(least + 1u, kMost);
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
