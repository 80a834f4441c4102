#ifndef RUBATO_SERVER_RULES_BY_CHUNK_H_
#define RUBATO_SERVER_RULES_BY_CHUNK_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace rubato::server {

// An item for each of some of a job's chunks, found at a place instead of by a search: several times for each push.
// What was added one after another lies side by side, and so does where it is, as the chunks of a request do. Takes
// four bytes for each chunk of the job, too. Not thread-safe.
template <typename Item>
class ByChunk {
 public:
  // Once for each chunk, an index of the job's chunks. Items that were added before may move.
  void Add(uint32_t chunk, Item item) {
    if (chunk >= places_.size()) places_.resize(chunk + size_t{1}, kNone);
    places_[chunk] = static_cast<uint32_t>(items_.size());
    items_.push_back(std::move(item));
  }

  // Null if the chunk has none.
  const Item* Find(uint32_t chunk) const {
    return chunk < places_.size() && places_[chunk] != kNone ? &items_[places_[chunk]] : nullptr;
  }
  // The chunk has one; std::out_of_range otherwise.
  const Item& at(uint32_t chunk) const { return items_.at(places_.at(chunk)); }
  Item& at(uint32_t chunk) { return items_.at(places_.at(chunk)); }

  // In the order in which they were added.
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }

 private:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  std::vector<Item> items_;
  // In items_, by chunk.
  std::vector<uint32_t> places_;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_RULES_BY_CHUNK_H_
