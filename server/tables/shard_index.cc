#include "server/tables/shard_index.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rubato::server {
namespace {

// A segment's lines: from nine to sixteen, by the shard, times a power of two.
constexpr int kDoublings = 8;
uint32_t FirstLines(uint32_t shard) { return 16 - shard % 8; }

// A segment is full with four of five entries: fuller ones save little memory, and send more lookups to the next line,
// which nobody has fetched.
bool HasRoom(uint32_t used, uint32_t line_count) { return 5 * used < 16 * line_count; }

}  // namespace

ShardIndex::ShardIndex(TableMemory* memory, uint32_t shard, int shard_bits)
    : memory_(memory), shard_(shard), shard_bits_(shard_bits), most_lines_(FirstLines(shard) << kDoublings) {
  Begin();
}

void ShardIndex::Begin() {
  segments_ = {MakeSegment(FirstLines(shard_), 0)};
  directory_.resize(1);
  depth_ = 0;
  size_ = 0;
  Show(0, 0);
}

uint32_t ShardIndex::FindAfter(uint64_t hash, const Line* line) const {
  const Place& place = directory_[PlaceOf(hash)];
  const Line* const end = place.lines + place.line_count;
  for (;;) {
    if (++line == end) line = place.lines;
    const uint32_t row = RowIn(*line, hash);
    // There is always a line with room.
    if (row != 0 || !IsFull(*line)) return row;
  }
}

void ShardIndex::Insert(uint64_t hash, uint32_t row, uint32_t step) {
  size_t place = PlaceOf(hash);
  while (!HasRoom(segments_[directory_[place].segment].used, directory_[place].line_count)) {
    Grow(directory_[place].segment);
    place = PlaceOf(hash);
  }
  Put(segments_[directory_[place].segment], {.hash = hash, .row = row, .step = step});
  ++size_;
}

void ShardIndex::SetStep(uint64_t hash, uint32_t step, const Line* begin) {
  const Place& place = directory_[PlaceOf(hash)];
  Line* const end = place.lines + place.line_count;
  for (Line* line = place.lines + (begin - place.lines);;) {
    for (Entry& entry : line->entries) {
      if (entry.hash != hash || entry.row == 0) continue;
      entry.step = step;
      return;
    }
    if (++line == end) line = place.lines;
  }
}

void ShardIndex::Put(Segment& segment, const Entry& added) {
  Line* const end = segment.lines + segment.line_count;
  Line* line = LineIn({segment.lines, segment.line_count, 0}, added.hash);
  while (IsFull(*line)) {
    if (++line == end) line = segment.lines;
  }
  Entry* entry = line->entries;
  while (entry->row != 0) ++entry;
  *entry = added;
  ++segment.used;
}

ShardIndex::Segment ShardIndex::MakeSegment(uint32_t line_count, int depth) {
  Segment segment = {.line_count = line_count, .depth = depth, .at = memory_->Take(line_count)};
  segment.lines = reinterpret_cast<Line*>(memory_->At(segment.at));
  std::memset(segment.lines, 0, sizeof(Line) * line_count);
  return segment;
}

void ShardIndex::Grow(uint32_t index) {
  const Segment full = segments_[index];
  const bool splits = full.line_count == most_lines_;
  if (splits && full.depth == depth_) {
    // Twice the places, each where there was one.
    std::vector<Place> doubled;
    for (const Place& place : directory_) doubled.insert(doubled.end(), 2, place);
    directory_ = std::move(doubled);
    ++depth_;
  }
  const uint32_t other = splits ? static_cast<uint32_t>(segments_.size()) : index;
  const int depth = splits ? full.depth + 1 : full.depth;
  segments_[index] = MakeSegment(splits ? full.line_count : 2 * full.line_count, depth);
  if (splits) segments_.push_back(MakeSegment(full.line_count, depth));
  size_t places[2] = {};
  for (const Line* line = full.lines; line < full.lines + full.line_count; ++line) {
    for (const Entry& entry : line->entries) {
      if (entry.row == 0) continue;
      const size_t place = PlaceOf(entry.hash);
      const bool goes = splits && (place >> (depth_ - depth) & 1) != 0;
      places[goes] = place;
      Put(segments_[goes ? other : index], entry);
    }
  }
  // One that got nothing has its places beside the other's.
  const size_t bit = splits ? size_t{1} << (depth_ - depth) : 0;
  if (segments_[index].used == 0) places[0] = places[1] & ~bit;
  if (splits && segments_[other].used == 0) places[1] = places[0] | bit;
  Show(index, places[0]);
  if (splits) Show(other, places[1]);
  memory_->Return(full.at, full.line_count);
}

void ShardIndex::Show(uint32_t index, size_t place) {
  const Segment& segment = segments_[index];
  const size_t count = size_t{1} << (depth_ - segment.depth);
  const size_t first = place & ~(count - 1);
  std::fill_n(directory_.begin() + static_cast<ptrdiff_t>(first), count,
              Place{segment.lines, segment.line_count, index});
}

std::vector<ShardIndex::Entry> ShardIndex::Entries() const {
  std::vector<Entry> entries;
  entries.reserve(size_);
  for (const Segment& segment : segments_) {
    for (const Line* line = segment.lines; line < segment.lines + segment.line_count; ++line) {
      for (const Entry& entry : line->entries) {
        if (entry.row != 0) entries.push_back(entry);
      }
    }
  }
  return entries;
}

void ShardIndex::Keep(const std::vector<Entry>& entries) {
  const std::vector<Segment> outgrown = std::move(segments_);
  for (const Segment& segment : outgrown) memory_->Return(segment.at, segment.line_count);
  Begin();
  for (const Entry& entry : entries) Insert(entry.hash, entry.row, entry.step);
}

}  // namespace rubato::server
