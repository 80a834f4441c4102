#ifndef RUBATO_CLIENT_LIBRARY_KEY_INDEX_H_
#define RUBATO_CLIENT_LIBRARY_KEY_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rubato::client {

// Numbers keys, each once, in the order in which they come. Not thread-safe.
//
//   KeyIndex index;
//   index.Add(7);   // 0
//   index.Add(-1);  // 1
//   index.Add(7);   // 0
class KeyIndex {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // The key's number. REQUIRES: fewer than 2^31 keys.
  uint32_t Add(uint64_t key);
  // kNone: it was not added.
  uint32_t Find(uint64_t key) const;
  // By number.
  const std::vector<uint64_t>& keys() const { return keys_; }
  // Forgets all keys. What memory there is stays.
  void Clear();

 private:
  // Where the key is, or the empty slot where it belongs. REQUIRES: there are slots.
  size_t SlotOf(uint64_t key) const;
  void Grow();

  // A power of two, at most half of them in use; kNone: empty.
  std::vector<uint32_t> slots_;
  std::vector<uint64_t> keys_;
};

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_LIBRARY_KEY_INDEX_H_
