#include "client/library/key_index.h"

#include <algorithm>
#include <utility>

namespace rubato::client {
namespace {

constexpr size_t kFirstSlots = 64;

// The upper bits of what is multiplied depend on all bits of the key.
uint64_t Spread(uint64_t key) {
  key = (key ^ (key >> 32)) * 0x9e3779b97f4a7c15;
  return key ^ (key >> 32);
}

}  // namespace

size_t KeyIndex::SlotOf(uint64_t key) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = Spread(key) & mask;
  while (slots_[slot] != kNone && keys_[slots_[slot]] != key) slot = (slot + 1) & mask;
  return slot;
}

uint32_t KeyIndex::Add(uint64_t key) {
  if (2 * keys_.size() >= slots_.size()) Grow();
  const size_t slot = SlotOf(key);
  if (slots_[slot] == kNone) {
    slots_[slot] = static_cast<uint32_t>(keys_.size());
    keys_.push_back(key);
  }
  return slots_[slot];
}

uint32_t KeyIndex::Find(uint64_t key) const { return slots_.empty() ? kNone : slots_[SlotOf(key)]; }

void KeyIndex::Clear() {
  std::fill(slots_.begin(), slots_.end(), kNone);
  keys_.clear();
}

void KeyIndex::Grow() {
  slots_.assign(std::max(kFirstSlots, 2 * slots_.size()), kNone);
  for (size_t number = 0; number < keys_.size(); ++number)
    slots_[SlotOf(keys_[number])] = static_cast<uint32_t>(number);
}

}  // namespace rubato::client
