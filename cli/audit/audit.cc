#include "cli/audit/audit.h"

#include <google/protobuf/text_format.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/audit/log_audit.h"
#include "cli/audit/plan_agreement.h"
#include "common/status.h"
#include "common/storage/file.h"
#include "common/storage/update_log.h"
#include "proto/job_config.pb.h"

namespace rubato {
namespace {

// What is compared between the logs of a run.
struct Run {
  AuditReport report;
  PlanAgreement plans{&report};
  std::map<uint32_t, std::string> chunk_logs;
  std::optional<std::string> job_name;
};

void NoteChunks(const LogAudit& audit, const std::string& name, Run& run) {
  for (uint32_t chunk : audit.chunks()) {
    const std::string& first = run.chunk_logs.try_emplace(chunk, name).first->second;
    if (first == name) continue;
    run.report.Break(Invariant::kOnce,
                     [&] { return absl::StrCat("chunk ", chunk, " is in two logs, ", first, " and ", name); });
  }
}

absl::Status AuditLog(const std::string& directory, const std::string& name, Run& run) {
  RUBATO_ASSIGN_OR_RETURN(auto log, UpdateLogReader::Open(JoinPath(directory, name)));
  const v1::LogHeader& header = log->header();
  if (run.job_name.value_or(header.job_name()) != header.job_name()) {
    return absl::DataLossError(
        absl::StrCat(name, ": is of job '", header.job_name(), "', the logs before it are of '", *run.job_name, "'"));
  }
  if (name != UpdateLogName(header.server(), header.partition())) {
    return absl::DataLossError(
        absl::StrCat(name, ": its header says ", UpdateLogName(header.server(), header.partition())));
  }
  run.job_name = header.job_name();
  const std::string where = absl::StrCat("server ", header.server(), ", partition ", header.partition());
  LogAudit audit(where, &run.report);
  v1::UpdateLogRecord record;
  for (;;) {
    RUBATO_ASSIGN_OR_RETURN(bool more, log->Next(&record));
    if (!more) break;
    if (record.has_plan()) run.plans.OnPlan(where, record.plan());
    audit.OnRecord(record);
  }
  audit.Finish(log->torn());
  NoteChunks(audit, name, run);
  ++run.report.logs;
  if (log->torn()) run.report.notes.push_back(absl::StrCat(name, " ends in the middle of a record"));
  return absl::OkStatus();
}

// Notes which logs the job's config lets expect in vain.
void NoteMissing(const std::string& directory, AuditReport& report) {
  absl::StatusOr<std::string> text = ReadFile(JoinPath(directory, "job.textproto"));
  v1::JobConfig config;
  if (!text.ok() || !google::protobuf::TextFormat::ParseFromString(*text, &config)) return;
  for (uint32_t server = 0; server < config.cluster().servers(); ++server) {
    for (uint32_t partition = 0; partition < config.cluster().partitions_per_server(); ++partition) {
      const std::string name = UpdateLogName(server, partition);
      if (!FileExists(JoinPath(directory, name))) report.notes.push_back(absl::StrCat(name, " is missing"));
    }
  }
}

}  // namespace

absl::StatusOr<AuditReport> AuditRun(const std::string& run_directory) {
  RUBATO_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDirectory(run_directory));
  Run run;
  for (const std::string& name : names) {
    if (!absl::StartsWith(name, "updates-") || !absl::EndsWith(name, ".log")) continue;
    RUBATO_RETURN_IF_ERROR(AuditLog(run_directory, name, run));
  }
  if (run.report.logs == 0) {
    return absl::NotFoundError(
        absl::StrCat(run_directory, ": holds no update logs; the job must run with cluster.update_log: true"));
  }
  NoteMissing(run_directory, run.report);
  run.report.chunks = static_cast<int64_t>(run.chunk_logs.size());
  run.report.plans = run.plans.plans();
  return std::move(run.report);
}

}  // namespace rubato
