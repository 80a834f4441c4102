#include "common/trace/trace_log.h"

#include <cstring>

namespace rubato {
namespace {

constexpr size_t kBlockBytes = size_t{1} << 16;
// A head, a pointer and up to eight numbers of up to ten bytes.
constexpr size_t kLargestEntry = 1 + sizeof(void*) + 8 * 10;

// Base 128, as in Protocol Buffers: small numbers take few bytes.
uint8_t* PutNumber(uint64_t value, uint8_t* to) {
  for (; value >= 0x80; value >>= 7) *to++ = static_cast<uint8_t>(value | 0x80);
  *to++ = static_cast<uint8_t>(value);
  return to;
}

const uint8_t* GetNumber(const uint8_t* from, uint64_t* value) {
  *value = 0;
  for (int shift = 0;; shift += 7) {
    *value |= static_cast<uint64_t>(*from & 0x7f) << shift;
    if (*from++ < 0x80) return from;
  }
}

// Small if the number is near 0, on either side.
uint64_t Fold(int64_t value) { return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63); }
int64_t ZigZagDecoded(uint64_t value) { return static_cast<int64_t>((value >> 1) ^ (0 - (value & 1))); }

uint64_t Minus(int64_t a, int64_t b) { return static_cast<uint64_t>(a) - static_cast<uint64_t>(b); }
int64_t Plus(int64_t a, uint64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + b); }

}  // namespace

void TraceLog::Clear() {
  for (Block& block : blocks_) block.used = 0;
  current_ = size_ = 0;
  last_begin_ns_ = 0;
}

uint8_t* TraceLog::Room() {
  if (!blocks_.empty() && kBlockBytes - blocks_[current_].used < kLargestEntry) ++current_;
  if (current_ == blocks_.size()) blocks_.push_back({.bytes = std::unique_ptr<uint8_t[]>(new uint8_t[kBlockBytes])});
  return blocks_[current_].bytes.get() + blocks_[current_].used;
}

void TraceLog::Append(const TraceEntry& entry) {
  uint8_t* const begin = Room();
  // The head: two bits for the type, and one for each detail that is a text.
  uint8_t head = static_cast<uint8_t>(entry.type);
  uint8_t* to = begin + 1;
  std::memcpy(to, &entry.kind, sizeof(entry.kind));
  to = PutNumber(entry.track.number, to + sizeof(entry.kind));
  to = PutNumber(entry.subject.number, to);
  to = PutNumber(Fold(static_cast<int64_t>(Minus(entry.begin_ns, last_begin_ns_))), to);
  last_begin_ns_ = entry.begin_ns;
  to = PutNumber(entry.type == TraceEntry::Type::kSpan ? Minus(entry.end_ns, entry.begin_ns) : entry.flow, to);
  for (size_t i = 0; i < entry.details.size() && entry.kind->details[i] != nullptr; ++i) {
    if (entry.details[i].is_text) head |= static_cast<uint8_t>(4u << i);
    to = PutNumber(Fold(entry.details[i].value), to);
  }
  *begin = head;
  blocks_[current_].used += static_cast<size_t>(to - begin);
  ++size_;
}

void TraceLog::ForEach(const std::function<void(const TraceEntry&)>& visit) const {
  int64_t last_begin_ns = 0;
  for (const Block& block : blocks_) {
    for (const uint8_t* from = block.bytes.get(); from < block.bytes.get() + block.used;) {
      TraceEntry entry;
      const uint8_t head = *from++;
      entry.type = static_cast<TraceEntry::Type>(head & 3);
      std::memcpy(&entry.kind, from, sizeof(entry.kind));
      uint64_t track = 0, subject = 0, begin = 0, last = 0;
      from = GetNumber(from + sizeof(entry.kind), &track);
      from = GetNumber(from, &subject);
      from = GetNumber(from, &begin);
      from = GetNumber(from, &last);
      entry.track.number = static_cast<uint32_t>(track);
      entry.subject.number = static_cast<uint32_t>(subject);
      entry.begin_ns = last_begin_ns = Plus(last_begin_ns, static_cast<uint64_t>(ZigZagDecoded(begin)));
      if (entry.type == TraceEntry::Type::kSpan) {
        entry.end_ns = Plus(entry.begin_ns, last);
      } else {
        entry.flow = last;
      }
      for (size_t i = 0; i < entry.details.size() && entry.kind->details[i] != nullptr; ++i) {
        uint64_t value = 0;
        from = GetNumber(from, &value);
        entry.details[i].value = ZigZagDecoded(value);
        entry.details[i].is_text = (head & (4u << i)) != 0;
      }
      visit(entry);
    }
  }
}

}  // namespace rubato
