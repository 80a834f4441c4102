#ifndef RUBATO_SERVER_TABLES_SHARD_INDEX_H_
#define RUBATO_SERVER_TABLES_SHARD_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/tables/table_memory.h"

namespace rubato::server {

// Which row belongs to which hash, for the hashes that begin with one shard's bits: an extendible directory (Fagin and
// others 1979) of segments of up to 256 KiB. A segment is an array of lines of the processor's caches, four entries
// each; an entry lies in the line that its hash picks, or in the next one that has room. A small index is one segment,
// which is doubled when it is full; a segment of full size is split in two by the next bit of the hashes. So an index
// grows by 256 KiB at a time, and no insertion takes longer than moving the entries of one segment.
//
// Segments of different shards have different sizes, between full and half: shards of one table have as many keys, and
// would otherwise all be half empty at the same time. Not thread-safe.
class ShardIndex {
 public:
  struct Entry {
    uint64_t hash;
    // 0: there is none.
    uint32_t row;
    // The row's last update, if somebody says so.
    uint32_t step;
  };
  struct Line {
    Entry entries[4];
  };
  static_assert(sizeof(Line) == TableMemory::kLine);

  // For hashes whose first `shard_bits` bits are the shard's number.
  ShardIndex(TableMemory* memory, uint32_t shard, int shard_bits);
  ShardIndex(ShardIndex&&) = default;

  // Where a lookup of the hash begins, to be fetched before.
  const Line* LineOf(uint64_t hash) const { return LineIn(directory_[PlaceOf(hash)], hash); }

  // The hash's row if it is in the line, otherwise 0. Without a branch for each entry: which one it is cannot be
  // predicted. Entries without a row count for nothing.
  static uint32_t RowIn(const Line& line, uint64_t hash) {
    uint32_t row = 0;
    for (const Entry& entry : line.entries) row |= entry.hash == hash ? entry.row : 0;
    return row;
  }
  // A hash that is not in a full line may be in the next one. Entries fill a line from its beginning.
  static bool IsFull(const Line& line) { return line.entries[3].row != 0; }

  // The hash's row, 0 if it has none. `begin` is LineOf(hash), and nothing was inserted since.
  uint32_t Find(uint64_t hash, const Line* begin) const {
    uint32_t row = RowIn(*begin, hash);
    if (row != 0 || !IsFull(*begin)) [[likely]]
      return row;
    return FindAfter(hash, begin);
  }
  uint32_t Find(uint64_t hash) const { return Find(hash, LineOf(hash)); }

  // The hash has no row yet. `row` is not 0. Moves entries if there is no room.
  void Insert(uint64_t hash, uint32_t row, uint32_t step = 0);
  // REQUIRES: the hash has a row. `begin` is LineOf(hash), and nothing was inserted since.
  void SetStep(uint64_t hash, uint32_t step, const Line* begin);

  int64_t size() const { return size_; }
  // In any order.
  std::vector<Entry> Entries() const;
  // What is left are these entries, of those that there were. Takes as long as inserting them.
  void Keep(const std::vector<Entry>& entries);

 private:
  struct Segment {
    Line* lines = nullptr;
    uint32_t line_count = 0;
    uint32_t used = 0;
    // Bits of the directory's place that its hashes have in common.
    int depth = 0;
    // What was taken of the memory.
    uint32_t at = 0;
  };
  // With what a lookup needs of a segment.
  struct Place {
    Line* lines;
    uint32_t line_count;
    uint32_t segment;
  };

  // By the lower half of the hash; the directory is by its first bits.
  static Line* LineIn(const Place& place, uint64_t hash) {
    return place.lines + ((hash & UINT32_MAX) * place.line_count >> 32);
  }
  size_t PlaceOf(uint64_t hash) const { return hash << shard_bits_ >> 1 >> (63 - depth_); }

  uint32_t FindAfter(uint64_t hash, const Line* line) const;
  // One segment without entries.
  void Begin();
  void Put(Segment& segment, const Entry& entry);
  Segment MakeSegment(uint32_t line_count, int depth);
  // A segment of twice the lines takes the place of one that is full, or two of as many do.
  void Grow(uint32_t index);
  // The directory's places for a segment, which is at one of them.
  void Show(uint32_t index, size_t place);

  TableMemory* const memory_;
  const uint32_t shard_;
  const int shard_bits_;
  const uint32_t most_lines_;
  // The directory has 2^depth_ places.
  int depth_ = 0;
  std::vector<Place> directory_;
  std::vector<Segment> segments_;
  int64_t size_ = 0;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_TABLES_SHARD_INDEX_H_
