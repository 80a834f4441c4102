#include "common/trace/trace_recorder.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

using Json = nlohmann::ordered_json;

// Texts may hold anything; what is not UTF-8 is replaced.
std::string Dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// As it stands between the quotes of JSON.
std::string Escape(const std::string& text) {
  const std::string quoted = Dump(text);
  return quoted.substr(1, quoted.size() - 2);
}

std::string Metadata(const char* what, uint32_t process, uint32_t track, const Json& args) {
  return Dump({{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", track}, {"args", args}});
}

// In microseconds.
void AppendTime(int64_t ns, std::string* json) {
  if (ns < 0) json->push_back('-');
  const uint64_t positive = ns < 0 ? 0 - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  absl::StrAppend(json, positive / 1000, ".", absl::Dec(positive % 1000, absl::kZeroPad3));
}

void AppendDetails(const TraceEntry& entry, const std::vector<std::string>& escaped, std::string* json) {
  json->append(",\"args\":{");
  for (size_t i = 0; i < entry.details.size() && entry.kind->details[i] != nullptr; ++i) {
    absl::StrAppend(json, i == 0 ? "\"" : ",\"", entry.kind->details[i], "\":");
    if (entry.details[i].is_text) {
      absl::StrAppend(json, "\"", escaped[static_cast<size_t>(entry.details[i].value)], "\"");
    } else {
      absl::StrAppend(json, entry.details[i].value);
    }
  }
  json->append("}");
}

// An event of trace event format. `escaped`: the texts, by number.
void AppendEvent(const TraceEntry& entry, const std::vector<std::string>& escaped, uint32_t process, uint32_t row,
                 std::string* json) {
  const uint32_t subject = entry.subject.number;
  absl::StrAppend(json, ",\n{\"name\":\"", entry.kind->name, subject == 0 ? "" : " ", escaped[subject], "\",\"cat\":\"",
                  entry.kind->category, "\",\"ts\":");
  AppendTime(entry.begin_ns, json);
  if (entry.type == TraceEntry::Type::kSpan) {
    json->append(",\"ph\":\"X\",\"dur\":");
    AppendTime(entry.end_ns - entry.begin_ns, json);
    AppendDetails(entry, escaped, json);
  } else {
    // Ids are texts: as numbers they would not survive a reader that has only float64. An arrow ends at the span around
    // its end, not at the next one.
    absl::StrAppend(json, ",\"ph\":\"", entry.type == TraceEntry::Type::kFlowBegin ? "s" : "f\",\"bp\":\"e",
                    "\",\"id\":\"0x", absl::Hex(entry.flow, absl::kZeroPad16), "\"");
  }
  absl::StrAppend(json, ",\"pid\":", process, ",\"tid\":", row, "}");
}

}  // namespace

TraceText TraceRecorder::Text(absl::string_view text) {
  MutexLock lock(mu_);
  if (const auto known = text_numbers_.find(text); known != text_numbers_.end()) return {known->second};
  const auto number = static_cast<uint32_t>(texts_.size());
  texts_.emplace_back(text);
  text_numbers_.emplace(std::string(text), number);
  return {number};
}

bool TraceRecorder::Start() {
  MutexLock lock(mu_);
  if (enabled()) return false;
  log_.Clear();
  dropped_ = 0;
  enabled_.store(true, std::memory_order_relaxed);
  return true;
}

void TraceRecorder::Keep(const TraceEntry& entry) {
  MutexLock lock(mu_);
  if (log_.size() < options_.max_spans) {
    log_.Append(entry);
  } else {
    ++dropped_;
  }
}

void TraceRecorder::Span(const TraceKind& kind, const SpanInfo& span, std::initializer_list<TraceDetail> details) {
  if (!enabled()) return;
  TraceEntry entry = {.kind = &kind,
                      .track = span.track,
                      .subject = span.subject,
                      .begin_ns = SinceEpoch(span.begin),
                      .end_ns = SinceEpoch(std::max(span.begin, span.end))};
  std::copy_n(details.begin(), std::min(details.size(), entry.details.size()), entry.details.begin());
  Keep(entry);
}

void TraceRecorder::Flow(const TraceKind& kind, const FlowInfo& flow) {
  if (!enabled()) return;
  Keep({.type = flow.begins ? TraceEntry::Type::kFlowBegin : TraceEntry::Type::kFlowEnd,
        .kind = &kind,
        .track = flow.track,
        .begin_ns = SinceEpoch(flow.at),
        .flow = flow.id});
}

void TraceRecorder::PutJson(const std::function<void(absl::string_view)>& put) const {
  const uint32_t process = options_.task_index;
  MutexLock lock(mu_);
  Json data = {
      {"task", options_.task}, {"epoch_unix_microseconds", absl::ToUnixMicros(epoch_)}, {"dropped_spans", dropped_}};
  if (std::optional<ClockOffset::Estimate> offset = options_.clock_offset ? options_.clock_offset() : std::nullopt) {
    data["clock_offset_microseconds"] = absl::ToDoubleMicroseconds(offset->ahead);
    data["clock_error_microseconds"] = absl::ToDoubleMicroseconds(offset->error);
  }
  put(absl::StrCat("{\"displayTimeUnit\":\"ms\",\"otherData\":", Dump(data), ",\"traceEvents\":[\n",
                   Metadata("process_name", process, 0, {{"name", options_.task}})));
  std::vector<std::string> escaped;
  for (const std::string& text : texts_) escaped.push_back(Escape(text));
  // By track: rows are numbered from 1, in the order of their first spans. Viewers take thread 0 for the idle one.
  std::vector<uint32_t> rows(texts_.size(), 0), tracks;
  std::string event;
  log_.ForEach([&](const TraceEntry& entry) {
    uint32_t& row = rows[entry.track.number];
    if (row == 0) {
      tracks.push_back(entry.track.number);
      row = static_cast<uint32_t>(tracks.size());
    }
    event.clear();
    AppendEvent(entry, escaped, process, row, &event);
    put(event);
  });
  for (uint32_t track : tracks) {
    put(absl::StrCat(",\n", Metadata("thread_name", process, rows[track], {{"name", texts_[track]}}), ",\n",
                     Metadata("thread_sort_index", process, rows[track], {{"sort_index", rows[track]}})));
  }
  put("\n]}\n");
}

std::string TraceRecorder::ToJson() const {
  std::string json;
  PutJson([&json](absl::string_view piece) { absl::StrAppend(&json, piece); });
  return json;
}

absl::Status TraceRecorder::Write(const std::string& path) const {
  const std::string temporary = absl::StrCat(path, ".tmp");
  RUBATO_ASSIGN_OR_RETURN(auto file, FileWriter::Create(temporary, FileWriter::kReplace));
  // Sync fails as the first Write did that failed.
  PutJson([&file](absl::string_view piece) { file->Write(piece).IgnoreError(); });
  RUBATO_RETURN_IF_ERROR(file->Sync());
  RUBATO_RETURN_IF_ERROR(file->Close());
  return RenameFile(temporary, path);
}

}  // namespace rubato
