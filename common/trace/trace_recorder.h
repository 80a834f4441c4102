#ifndef RUBATO_COMMON_TRACE_TRACE_RECORDER_H_
#define RUBATO_COMMON_TRACE_TRACE_RECORDER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/session/clock_offset.h"
#include "common/trace/trace_log.h"

namespace rubato {

// What a task did and when, to be looked at in a viewer of Chrome's trace event format (chrome://tracing, Perfetto).
//
//   constexpr TraceKind kPush = {"exchange", "push", {"step", "bytes"}};
//   TraceRecorder trace({.task = "worker 1", .task_index = 1, .clock = clock});
//   const TraceTrack track = trace.Track("batch 3 (server 0)");
//   trace.Start();
//   const absl::Time sent = clock->Now();
//   ...
//   trace.Span(kPush, {.track = track, .begin = sent, .end = clock->Now()}, {step, bytes});
//   RUBATO_RETURN_IF_ERROR(trace.Write("runs/job/traces/worker-1.json"));
//
// A track is a row of the timeline. Spans of one track must lie in each other or apart; what may overlap otherwise, as
// messages in flight do, gets a track of its own.
//
// A span costs some tens of nanoseconds: a step of a small model takes a few milliseconds and has hundreds of them.
// If the details cost something to find out, ask enabled() first. Thread-safe.
class TraceRecorder {
 public:
  struct Options {
    // Names the process in the viewer; its index becomes the process id, so that the files of several tasks can be put
    // together.
    std::string task;
    uint32_t task_index = 0;
    // Spans and ends of flows beyond this many are only counted.
    size_t max_spans = size_t{1} << 20;
    // By how much the coordinator's clock is ahead, when the trace is written; by it the traces of several tasks are
    // laid side by side. Empty, or without a value: not known.
    std::function<std::optional<ClockOffset::Estimate>()> clock_offset = {};
    // Outlives the recorder; time is counted from its value at construction.
    const Clock* clock = nullptr;
  };
  struct SpanInfo {
    TraceTrack track;
    // What it is done to, if anything.
    TraceText subject = {};
    absl::Time begin;
    absl::Time end;
  };
  // An end of an arrow between spans of two tasks.
  struct FlowInfo {
    TraceTrack track;
    // The same at both ends, and nowhere else.
    uint64_t id = 0;
    // Where the arrow begins, or where it arrives.
    bool begins = false;
    // Inside of a span of the track.
    absl::Time at;
  };

  explicit TraceRecorder(Options options) : options_(std::move(options)), epoch_(options_.clock->Now()) {}

  // The same for the same text, and kept for as long as the recorder: for texts that come again and again. Waits while
  // a recording is written. A track that has no spans of a recording is not in it.
  TraceText Text(absl::string_view text);
  TraceTrack Track(absl::string_view name) { return {Text(name).number}; }

  // Begins to record, with nothing there. False, and nothing changes, when it is recording already.
  bool Start();
  // What was recorded stays until the next Start.
  void Stop() { enabled_.store(false, std::memory_order_relaxed); }
  // At first it is not.
  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }

  // Something that has ended, with a value for each of the kind's details. Does nothing unless enabled.
  void Span(const TraceKind& kind, const SpanInfo& span, std::initializer_list<TraceDetail> details = {});
  // The same kind at both ends.
  void Flow(const TraceKind& kind, const FlowInfo& flow);

  // The spans so far in trace event format (a JSON object; docs/formats.md).
  std::string ToJson() const;
  // Writes ToJson() to `path` as WriteFileAtomically does, without all of it in memory: the allocator would keep that.
  // The directory must be there.
  absl::Status Write(const std::string& path) const;

 private:
  // ToJson() in pieces.
  void PutJson(const std::function<void(absl::string_view)>& put) const;
  void Keep(const TraceEntry& entry);
  int64_t SinceEpoch(absl::Time time) const { return absl::ToInt64Nanoseconds(time - epoch_); }

  const Options options_;
  const absl::Time epoch_;
  std::atomic<bool> enabled_ = false;
  mutable Mutex mu_;
  absl::flat_hash_map<std::string, uint32_t> text_numbers_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> texts_ ABSL_GUARDED_BY(mu_) = {""};  // By number.
  TraceLog log_ ABSL_GUARDED_BY(mu_);
  int64_t dropped_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_TRACE_TRACE_RECORDER_H_
