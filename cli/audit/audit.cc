#include "cli/audit/audit.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/audit/examples_audit.h"
#include "cli/audit/log_audit.h"
#include "cli/audit/plan_agreement.h"
#include "cli/audit/term_history.h"
#include "common/status.h"
#include "common/storage/file.h"
#include "common/storage/update_log.h"
#include "proto/job_config.pb.h"

namespace rubato {
namespace {

// A log's file, in the order in which they are read.
struct LogFile {
  uint64_t term = 1;
  uint32_t server = 0;
  uint32_t partition = 0;

  std::string name() const { return UpdateLogName(server, partition, term); }
  std::string where() const {
    const std::string log = absl::StrCat("server ", server, ", partition ", partition);
    return term <= 1 ? log : absl::StrCat("term ", term, ", ", log);
  }
  auto operator<=>(const LogFile&) const = default;
};

// Takes a number from the front of `text`.
template <typename Number>
bool ConsumeNumber(absl::string_view* text, Number* number) {
  const size_t digits = std::min(text->find_first_not_of("0123456789"), text->size());
  const bool good = absl::SimpleAtoi(text->substr(0, digits), number);
  text->remove_prefix(digits);
  return good;
}

// What the name of a log says, as UpdateLogName writes it.
std::optional<LogFile> ParseName(absl::string_view name) {
  LogFile file;
  absl::string_view rest = name;
  const bool good = absl::ConsumePrefix(&rest, "updates-server") && ConsumeNumber(&rest, &file.server) &&
                    absl::ConsumePrefix(&rest, "-partition") && ConsumeNumber(&rest, &file.partition);
  if (!good) return std::nullopt;
  if (absl::ConsumePrefix(&rest, "-term") && !ConsumeNumber(&rest, &file.term)) return std::nullopt;
  return file.name() == name ? std::optional<LogFile>(file) : std::nullopt;
}

// What is compared between the logs of a run.
struct Run {
  AuditReport report;
  TermHistory terms{&report};
  ExamplesAudit examples{&report};
  // Of this term.
  std::optional<PlanAgreement> plans;
  std::map<uint32_t, std::string> chunk_logs;
  std::set<uint32_t> chunks;
  std::optional<std::string> job_name;
};

void NoteChunks(const LogAudit& audit, const std::string& name, Run& run) {
  for (uint32_t chunk : audit.chunks()) {
    run.chunks.insert(chunk);
    const std::string& first = run.chunk_logs.try_emplace(chunk, name).first->second;
    if (first == name) continue;
    run.report.Break(Invariant::kOnce,
                     [&] { return absl::StrCat("chunk ", chunk, " is in two logs, ", first, " and ", name); });
  }
}

absl::Status AuditLog(const std::string& directory, const LogFile& file, Run& run) {
  const std::string name = file.name();
  RUBATO_ASSIGN_OR_RETURN(auto log, UpdateLogReader::Open(JoinPath(directory, name)));
  const v1::LogHeader& header = log->header();
  if (run.job_name.value_or(header.job_name()) != header.job_name()) {
    return absl::DataLossError(
        absl::StrCat(name, ": is of job '", header.job_name(), "', the logs before it are of '", *run.job_name, "'"));
  }
  if (header.server() != file.server || header.partition() != file.partition) {
    return absl::DataLossError(
        absl::StrCat(name, ": its header says ", UpdateLogName(header.server(), header.partition(), file.term)));
  }
  run.job_name = header.job_name();
  const std::string where = file.where();
  LogAudit audit(where, run.terms.restored(), &run.report);
  v1::UpdateLogRecord record;
  for (;;) {
    RUBATO_ASSIGN_OR_RETURN(bool more, log->Next(&record));
    if (!more) break;
    if (record.has_plan()) {
      run.plans->OnPlan(where, record.plan());
      run.terms.OnPlan(where, record.plan());
    }
    if (record.has_update()) run.examples.OnPush(where, record.update());
    audit.OnRecord(record);
  }
  audit.Finish(log->torn());
  run.terms.OnLog(where, audit, log->torn());
  NoteChunks(audit, name, run);
  ++run.report.logs;
  if (log->torn()) run.report.notes.push_back(absl::StrCat(name, " ends in the middle of a record"));
  return absl::OkStatus();
}

// The step that the term begins with; none if a log has no plan, because the job went back before there was one.
absl::StatusOr<std::optional<int64_t>> FirstStep(const std::string& directory, const std::vector<LogFile>& files) {
  std::optional<int64_t> first;
  for (const LogFile& file : files) {
    RUBATO_ASSIGN_OR_RETURN(auto log, UpdateLogReader::Open(JoinPath(directory, file.name())));
    v1::UpdateLogRecord record;
    for (;;) {
      RUBATO_ASSIGN_OR_RETURN(bool more, log->Next(&record));
      if (!more || record.has_plan()) break;
    }
    if (record.has_plan()) first = std::min(first.value_or(record.plan().first_step()), record.plan().first_step());
  }
  return first;
}

// All logs of one term.
absl::Status AuditTerm(const std::string& directory, const std::vector<LogFile>& files, Run& run) {
  run.terms.Begin(files[0].term);
  run.plans.emplace(&run.report);
  run.chunk_logs.clear();
  const int64_t violations = run.report.violations();
  const int64_t pushes = run.report.pushes;
  for (const LogFile& file : files) RUBATO_RETURN_IF_ERROR(AuditLog(directory, file, run));
  run.terms.End();
  TermReport& term = run.report.terms.back();
  term.violations = run.report.violations() - violations;
  term.pushes = run.report.pushes - pushes;
  run.report.plans += run.plans->plans();
  return absl::OkStatus();
}

// Notes which logs the job's config lets expect in vain: of its servers, or of those that were there when it went back
// to a checkpoint, which may be others.
void NoteMissing(const std::string& directory, const std::map<uint64_t, std::vector<LogFile>>& terms,
                 AuditReport& report) {
  absl::StatusOr<std::string> text = ReadFile(JoinPath(directory, "job.textproto"));
  v1::JobConfig config;
  google::protobuf::TextFormat::Parser parser;
  parser.AllowUnknownField(true);
  if (!text.ok() || !parser.ParseFromString(*text, &config)) return;
  for (const auto& [term, files] : terms) {
    std::set<uint32_t> servers;
    for (const LogFile& file : files) servers.insert(file.server);
    for (uint32_t server = 0; terms.size() == 1 && server < config.cluster().servers(); ++server)
      servers.insert(server);
    for (uint32_t server : servers) {
      for (uint32_t partition = 0; partition < config.cluster().partitions_per_server(); ++partition) {
        const std::string name = UpdateLogName(server, partition, term);
        if (!FileExists(JoinPath(directory, name))) report.notes.push_back(absl::StrCat(name, " is missing"));
      }
    }
  }
}

}  // namespace

absl::StatusOr<AuditReport> AuditRun(const std::string& run_directory) {
  RUBATO_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDirectory(run_directory));
  std::map<uint64_t, std::vector<LogFile>> terms;
  for (const std::string& name : names) {
    if (!absl::StartsWith(name, "updates-") || !absl::EndsWith(name, ".log")) continue;
    const std::optional<LogFile> file = ParseName(name);
    if (!file.has_value()) {
      return absl::DataLossError(
          absl::StrCat(name, ": is not the name of an update log; ", UpdateLogName(0, 0), " is"));
    }
    terms[file->term].push_back(*file);
  }
  // The steps of a term that later ones have kept.
  std::map<uint64_t, int64_t> ends;
  int64_t end = std::numeric_limits<int64_t>::max();
  for (auto term = terms.rbegin(); term != terms.rend(); ++term) {
    std::sort(term->second.begin(), term->second.end());
    ends[term->first] = end;
    RUBATO_ASSIGN_OR_RETURN(const std::optional<int64_t> first, FirstStep(run_directory, term->second));
    end = std::min(end, first.value_or(end));
  }
  Run run;
  for (const auto& [term, files] : terms) {
    run.examples.Begin(ends[term]);
    RUBATO_RETURN_IF_ERROR(AuditTerm(run_directory, files, run));
  }
  run.examples.Finish();
  if (run.report.logs == 0) {
    return absl::NotFoundError(
        absl::StrCat(run_directory, ": holds no update logs; the job must run with cluster.update_log: true"));
  }
  NoteMissing(run_directory, terms, run.report);
  run.report.chunks = static_cast<int64_t>(run.chunks.size());
  return std::move(run.report);
}

}  // namespace rubato
