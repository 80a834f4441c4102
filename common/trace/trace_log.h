#ifndef RUBATO_COMMON_TRACE_TRACE_LOG_H_
#define RUBATO_COMMON_TRACE_TRACE_LOG_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace rubato {

// A text, and a row of the timeline, by the number that a recorder has given it; 0: none.
struct TraceText {
  uint32_t number = 0;
};
struct TraceTrack {
  uint32_t number = 0;
};

// What the spans of one place in the program have in common. Its texts are literals, neither copied nor escaped. Lives
// as long as the recorder, as a constant does.
struct TraceKind {
  const char* category;
  const char* name;
  // Names of the details, as many as there are.
  std::array<const char*, 4> details = {};
};

// A detail: a number or a text.
struct TraceDetail {
  TraceDetail() = default;
  TraceDetail(int64_t value) : value(value) {}                        // NOLINT: as it is written
  TraceDetail(TraceText text) : value(text.number), is_text(true) {}  // NOLINT: as it is written

  int64_t value = 0;
  bool is_text = false;
};

// A span, or an end of a flow.
struct TraceEntry {
  enum class Type : uint8_t { kSpan, kFlowBegin, kFlowEnd };

  Type type = Type::kSpan;
  const TraceKind* kind = nullptr;
  TraceTrack track;
  TraceText subject;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;  // Of a span.
  uint64_t flow = 0;   // Of a flow.
  // Of a span, for each of the kind's.
  std::array<TraceDetail, 4> details = {};
};

// Entries one after another, each in some 25 bytes: fresh memory is what recording costs most, since the first touch of
// a page is a fault, and a second one under a hypervisor. Not thread-safe.
class TraceLog {
 public:
  // Its memory is kept for what comes.
  void Clear();
  void Append(const TraceEntry& entry);
  size_t size() const { return size_; }
  // In the order in which they came.
  void ForEach(const std::function<void(const TraceEntry&)>& visit) const;

 private:
  struct Block {
    std::unique_ptr<uint8_t[]> bytes;
    size_t used = 0;
  };

  // Room for any entry.
  uint8_t* Room();

  std::vector<Block> blocks_;
  size_t current_ = 0;  // The block that is being filled.
  size_t size_ = 0;
  int64_t last_begin_ns_ = 0;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_TRACE_TRACE_LOG_H_
