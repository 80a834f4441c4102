#include "common/trace/trace_recorder.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

using Json = nlohmann::ordered_json;

// Names may hold anything; what is not UTF-8 is replaced.
std::string Dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

double Microseconds(absl::Duration duration) { return absl::ToDoubleMicroseconds(duration); }

Json Metadata(const char* what, uint32_t process, int track, const Json& args) {
  return {{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", track}, {"args", args}};
}

// Ids are texts: as numbers they would not survive a reader that has only float64.
Json FlowEnd(char phase, uint64_t id, const std::string& name, double at, uint32_t process, int track) {
  Json event = {{"name", name},
                {"cat", "flow"},
                {"ph", std::string(1, phase)},
                {"id", absl::StrCat("0x", absl::Hex(id, absl::kZeroPad16))},
                {"ts", at},
                {"pid", process},
                {"tid", track}};
  if (phase == 'f') event["bp"] = "e";  // To the span around it, not to the next one.
  return event;
}

}  // namespace

int TraceRecorder::TrackLocked(absl::string_view name) {
  const size_t index = std::find(tracks_.begin(), tracks_.end(), name) - tracks_.begin();
  if (index == tracks_.size()) tracks_.emplace_back(name);
  // Numbered from 1: viewers take thread 0 for the idle one.
  return static_cast<int>(index) + 1;
}

bool TraceRecorder::Start() {
  MutexLock lock(mu_);
  if (enabled()) return false;
  tracks_.clear();
  entries_.clear();
  dropped_ = 0;
  enabled_.store(true, std::memory_order_relaxed);
  return true;
}

void TraceRecorder::AddLocked(absl::string_view track, Entry entry) {
  if (entries_.size() >= options_.max_spans) {
    ++dropped_;
    return;
  }
  entry.track = TrackLocked(track);
  entries_.push_back(std::move(entry));
}

void TraceRecorder::Span(const SpanInfo& span, std::initializer_list<TraceArg> args) {
  if (!enabled()) return;
  MutexLock lock(mu_);
  AddLocked(span.track, {.category = std::string(span.category),
                         .name = std::string(span.name),
                         .begin = span.begin,
                         .end = std::max(span.begin, span.end),
                         .args = args});
}

void TraceRecorder::Flow(const FlowInfo& flow) {
  if (!enabled()) return;
  MutexLock lock(mu_);
  AddLocked(flow.track, {.phase = flow.begins ? 's' : 'f',
                         .flow = flow.id,
                         .category = "flow",
                         .name = std::string(flow.name),
                         .begin = flow.at,
                         .end = flow.at});
}

std::string TraceRecorder::ToJson() const {
  const uint32_t process = options_.task_index;
  MutexLock lock(mu_);
  std::string text = "{\"displayTimeUnit\":\"ms\",\"otherData\":";
  Json data = {
      {"task", options_.task}, {"epoch_unix_microseconds", absl::ToUnixMicros(epoch_)}, {"dropped_spans", dropped_}};
  if (std::optional<ClockOffset::Estimate> offset = options_.clock_offset ? options_.clock_offset() : std::nullopt) {
    data["clock_offset_microseconds"] = Microseconds(offset->ahead);
    data["clock_error_microseconds"] = Microseconds(offset->error);
  }
  text += Dump(data);
  text += ",\"traceEvents\":[\n";
  text += Dump(Metadata("process_name", process, 0, {{"name", options_.task}}));
  for (size_t i = 0; i < tracks_.size(); ++i) {
    const int track = static_cast<int>(i) + 1;
    text += ",\n" + Dump(Metadata("thread_name", process, track, {{"name", tracks_[i]}}));
    text += ",\n" + Dump(Metadata("thread_sort_index", process, track, {{"sort_index", track}}));
  }
  for (const Entry& entry : entries_) {
    if (entry.phase != 'X') {
      text += ",\n" + Dump(FlowEnd(entry.phase, entry.flow, entry.name, Microseconds(entry.begin - epoch_), process,
                                   entry.track));
      continue;
    }
    Json args = Json::object();
    for (const TraceArg& arg : entry.args) {
      std::visit([&](const auto& value) { args[arg.name] = value; }, arg.value);
    }
    text += ",\n" + Dump({{"name", entry.name},
                          {"cat", entry.category},
                          {"ph", "X"},
                          {"ts", Microseconds(entry.begin - epoch_)},
                          {"dur", Microseconds(entry.end - entry.begin)},
                          {"pid", process},
                          {"tid", entry.track},
                          {"args", args}});
  }
  return text + "\n]}\n";
}

absl::Status TraceRecorder::Write(const std::string& path) const { return WriteFileAtomically(path, ToJson()); }

}  // namespace rubato
