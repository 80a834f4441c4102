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
  if (const auto known = track_numbers_.find(name); known != track_numbers_.end()) return known->second;
  tracks_.emplace_back(name);
  // Numbered from 1: viewers take thread 0 for the idle one.
  const int number = static_cast<int>(tracks_.size());
  track_numbers_.emplace(std::string(name), number);
  return number;
}

TraceRecorder::Text TraceRecorder::KeepLocked(absl::string_view text) {
  const Text kept = {texts_.size(), text.size()};
  texts_.append(text.data(), text.size());
  return kept;
}

bool TraceRecorder::Start() {
  MutexLock lock(mu_);
  if (enabled()) return false;
  tracks_.clear();
  track_numbers_.clear();
  entries_.clear();
  args_.clear();
  texts_.clear();
  dropped_ = 0;
  enabled_.store(true, std::memory_order_relaxed);
  return true;
}

bool TraceRecorder::HasRoomLocked() {
  if (entries_.size() < options_.max_spans) return true;
  ++dropped_;
  return false;
}

void TraceRecorder::Span(const SpanInfo& span, std::initializer_list<TraceArg> args) {
  if (!enabled()) return;
  MutexLock lock(mu_);
  if (!HasRoomLocked()) return;
  entries_.push_back({.track = TrackLocked(span.track),
                      .category = KeepLocked(span.category),
                      .name = KeepLocked(span.name),
                      .begin = span.begin,
                      .end = std::max(span.begin, span.end),
                      .args_begin = args_.size(),
                      .args_count = args.size()});
  for (const TraceArg& arg : args) {
    Arg& kept = args_.emplace_back();
    kept.name = KeepLocked(arg.name);
    if (const auto* number = std::get_if<int64_t>(&arg.value); number != nullptr) {
      kept.number = *number;
    } else {
      kept.is_text = true;
      kept.text = KeepLocked(std::get<absl::string_view>(arg.value));
    }
  }
}

void TraceRecorder::Flow(const FlowInfo& flow) {
  if (!enabled()) return;
  MutexLock lock(mu_);
  if (!HasRoomLocked()) return;
  entries_.push_back({.phase = flow.begins ? 's' : 'f',
                      .flow = flow.id,
                      .track = TrackLocked(flow.track),
                      .name = KeepLocked(flow.name),
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
      text += ",\n" + Dump(FlowEnd(entry.phase, entry.flow, TextOf(entry.name), Microseconds(entry.begin - epoch_),
                                   process, entry.track));
      continue;
    }
    Json args = Json::object();
    for (size_t i = entry.args_begin; i < entry.args_begin + entry.args_count; ++i) {
      const Arg& arg = args_[i];
      args[TextOf(arg.name)] = arg.is_text ? Json(TextOf(arg.text)) : Json(arg.number);
    }
    text += ",\n" + Dump({{"name", TextOf(entry.name)},
                          {"cat", TextOf(entry.category)},
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
