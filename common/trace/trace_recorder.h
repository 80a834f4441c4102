#ifndef RUBATO_COMMON_TRACE_TRACE_RECORDER_H_
#define RUBATO_COMMON_TRACE_TRACE_RECORDER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/session/clock_offset.h"

namespace rubato {

// A named detail of a span: a number or a text. Texts are not its own.
struct TraceArg {
  TraceArg(absl::string_view name, int64_t value) : name(name), value(value) {}
  TraceArg(absl::string_view name, absl::string_view value) : name(name), value(value) {}

  absl::string_view name;
  std::variant<int64_t, absl::string_view> value;
};

// What a task did and when, to be looked at in a viewer of Chrome's trace event format (chrome://tracing, Perfetto).
//
//   TraceRecorder trace({.task = "worker 1", .task_index = 1, .clock = clock});
//   trace.Start();
//   const absl::Time sent = clock->Now();
//   ...
//   trace.Span({.track = "server 0, batch 3", .category = "push", .name = "push", .begin = sent, .end = clock->Now()},
//              {{"step", step}, {"bytes", bytes}});
//   RUBATO_RETURN_IF_ERROR(trace.Write("runs/job/traces/worker-1.json"));
//
// A track is a row of the timeline. Spans of one track must lie in each other or apart; what may overlap otherwise, as
// messages in flight do, gets a track of its own. Where the span's texts cost something to make, ask enabled() first.
// Thread-safe.
class TraceRecorder {
 public:
  struct Options {
    // Names the process in the viewer; its index becomes the process id, so that the files of several tasks can be put
    // together.
    std::string task;
    uint32_t task_index = 0;
    // Spans and ends of flows beyond this many are only counted.
    size_t max_spans = size_t{1} << 18;
    // By how much the coordinator's clock is ahead, when the trace is written; by it the traces of several tasks are
    // laid side by side. Empty, or without a value: not known.
    std::function<std::optional<ClockOffset::Estimate>()> clock_offset = {};
    // Outlives the recorder; time is counted from its value at construction.
    const Clock* clock = nullptr;
  };
  // An end of an arrow between spans of two tasks.
  struct FlowInfo {
    absl::string_view track;
    absl::string_view name;
    // The same at both ends, and nowhere else.
    uint64_t id = 0;
    // Where the arrow begins, or where it arrives.
    bool begins = false;
    // Inside of a span of the track.
    absl::Time at;
  };
  struct SpanInfo {
    absl::string_view track;
    absl::string_view category;
    absl::string_view name;
    absl::Time begin;
    absl::Time end;
  };

  explicit TraceRecorder(Options options) : options_(std::move(options)), epoch_(options_.clock->Now()) {}

  // Begins to record, with nothing there. False, and nothing changes, when it is recording already.
  bool Start();
  // What was recorded stays until the next Start.
  void Stop() { enabled_.store(false, std::memory_order_relaxed); }
  // At first it is not.
  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }

  // Something that has ended; all of it is copied. Does nothing unless enabled.
  void Span(const SpanInfo& span, std::initializer_list<TraceArg> args = {});

  void Flow(const FlowInfo& flow);

  // The spans so far in trace event format (a JSON object; docs/formats.md).
  std::string ToJson() const;
  // Writes ToJson() to `path`, whole or not at all. The directory must be there. Errors of WriteFileAtomically.
  absl::Status Write(const std::string& path) const;

 private:
  // Entries are plain numbers: their texts and details lie together, so that recording one allocates nothing as a rule.
  struct Text {
    size_t begin = 0;
    size_t size = 0;
  };
  struct Arg {
    Text name;
    bool is_text = false;
    int64_t number = 0;
    Text text;
  };
  struct Entry {
    // 'X': a span. 's', 'f': where a flow begins and ends.
    char phase = 'X';
    uint64_t flow = 0;
    int track = 0;
    Text category;
    Text name;
    absl::Time begin;
    absl::Time end;
    size_t args_begin = 0;
    size_t args_count = 0;
  };

  // Whether there is room for another entry; otherwise it is counted.
  bool HasRoomLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  int TrackLocked(absl::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Text KeepLocked(absl::string_view text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::string TextOf(const Text& text) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return texts_.substr(text.begin, text.size);
  }

  const Options options_;
  const absl::Time epoch_;
  std::atomic<bool> enabled_ = false;
  mutable Mutex mu_;
  std::vector<std::string> tracks_ ABSL_GUARDED_BY(mu_);  // In order of their first span.
  absl::flat_hash_map<std::string, int> track_numbers_ ABSL_GUARDED_BY(mu_);
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mu_);
  std::vector<Arg> args_ ABSL_GUARDED_BY(mu_);
  std::string texts_ ABSL_GUARDED_BY(mu_);
  int64_t dropped_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_TRACE_TRACE_RECORDER_H_
