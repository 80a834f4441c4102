#include "common/trace/trace_recorder.h"

#include <algorithm>
#include <nlohmann/json.hpp>

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

}  // namespace

int TraceRecorder::TrackLocked(absl::string_view name) {
  const size_t index = std::find(tracks_.begin(), tracks_.end(), name) - tracks_.begin();
  if (index == tracks_.size()) tracks_.emplace_back(name);
  // Numbered from 1: viewers take thread 0 for the idle one.
  return static_cast<int>(index) + 1;
}

void TraceRecorder::Span(const SpanInfo& span, std::initializer_list<TraceArg> args) {
  if (!enabled()) return;
  MutexLock lock(mu_);
  if (entries_.size() >= options_.max_spans) {
    ++dropped_;
    return;
  }
  entries_.push_back({TrackLocked(span.track), std::string(span.category), std::string(span.name), span.begin,
                      std::max(span.begin, span.end), args});
}

std::string TraceRecorder::ToJson() const {
  const uint32_t process = options_.task_index;
  MutexLock lock(mu_);
  std::string text = "{\"displayTimeUnit\":\"ms\",\"otherData\":";
  text += Dump(
      {{"task", options_.task}, {"epoch_unix_microseconds", absl::ToUnixMicros(epoch_)}, {"dropped_spans", dropped_}});
  text += ",\"traceEvents\":[\n";
  text += Dump(Metadata("process_name", process, 0, {{"name", options_.task}}));
  for (size_t i = 0; i < tracks_.size(); ++i) {
    const int track = static_cast<int>(i) + 1;
    text += ",\n" + Dump(Metadata("thread_name", process, track, {{"name", tracks_[i]}}));
    text += ",\n" + Dump(Metadata("thread_sort_index", process, track, {{"sort_index", track}}));
  }
  for (const Entry& entry : entries_) {
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
