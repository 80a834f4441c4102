#include "common/log.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace rubato {
namespace {

std::string TimeText(absl::Time time) { return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone()); }

std::string Text(absl::string_view text) { return std::string(text.data(), text.size()); }

const char* SeverityName(char severity) { return severity == 'E' ? "error" : severity == 'W' ? "warning" : "info"; }

std::string TextLine(const LogEntry& entry) {
  std::string line = absl::StrCat(TimeText(entry.time), " ", std::string(1, entry.severity), " ", entry.who);
  if (entry.incarnation != 0) absl::StrAppendFormat(&line, " %08x", entry.incarnation >> 32);
  if (entry.generation != 0) absl::StrAppend(&line, " g", entry.generation, " s", entry.step);
  absl::StrAppend(&line, "] ", entry.message, "\n");
  return line;
}

std::string JsonLine(const LogEntry& entry) {
  nlohmann::ordered_json json = {{"time", TimeText(entry.time)}, {"severity", SeverityName(entry.severity)}};
  const size_t space = entry.who.rfind(' ');
  uint32_t index = 0;
  if (space != absl::string_view::npos && absl::SimpleAtoi(entry.who.substr(space + 1), &index)) {
    json["role"] = Text(entry.who.substr(0, space));
    json["index"] = index;
  } else {
    json["role"] = Text(entry.who);
  }
  if (entry.incarnation != 0) json["incarnation"] = absl::StrFormat("%016x", entry.incarnation);
  if (entry.generation != 0) {
    json["generation"] = entry.generation;
    json["step"] = entry.step;
  }
  json["message"] = Text(entry.message);
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string FormatLogLine(const LogEntry& entry, LogFormat format) {
  return format == LogFormat::kJson ? JsonLine(entry) : TextLine(entry);
}

void Logger::SetPosition(uint64_t generation, int64_t step) {
  MutexLock lock(mu_);
  generation_ = generation;
  step_ = step;
}

void Logger::Write(char severity, absl::string_view message) {
  if (options_.quiet && severity == 'I') return;
  LogEntry entry = {.severity = severity, .who = who_, .incarnation = options_.incarnation, .message = message};
  MutexLock lock(mu_);
  if (severity != 'I') last_problem_ = std::string(message);
  entry.time = clock_->Now();
  entry.generation = generation_;
  entry.step = step_;
  const std::string line = FormatLogLine(entry, options_.format);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace rubato
