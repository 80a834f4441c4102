#include "coordinator/record/run_files.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/config/checkpoint_directory.h"
#include "common/config/fingerprint.h"
#include "common/status.h"
#include "common/storage/cut_record.h"
#include "common/storage/file.h"
#include "common/storage/run_record_json.h"

namespace rubato::coordinator {
namespace {

// Errors of common/storage with the two codes that errors of the disk have here.
absl::Status AsDiskError(const absl::Status& status) {
  if (status.ok() || absl::IsResourceExhausted(status)) return status;
  return absl::UnavailableError(status.message());
}

// AlreadyExists when there is something in the file. A coordinator that could not listen leaves empty files.
absl::Status CheckEmpty(const std::string& directory, const std::string& path) {
  if (FileBytes(path).value_or(0) == 0) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat("run_directory ", directory, " holds an earlier run (", path,
                                               "); choose another run_directory, remove it, or continue that run with "
                                               "--resume"));
}

// A process that died may have left half a line, which is not a line of the record.
absl::Status CutTornLine(const std::string& path, AppendFile* file) {
  absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return AsDiskError(text.status());
  const size_t newline = text->rfind('\n');
  const size_t whole = newline == std::string::npos ? 0 : newline + 1;
  return whole == text->size() ? absl::OkStatus() : file->Truncate(whole);
}

// The record of one cut, and its directory if nothing else is in it.
absl::Status RemoveCut(const std::string& directory) {
  const std::string path = JoinPath(directory, kCutRecordName);
  if (FileExists(path)) {
    RUBATO_RETURN_IF_ERROR(AsDiskError(RemoveFile(path)));
    // Before others remove what it vouches for; with the last of that goes the directory.
    absl::Status synced = SyncDirectory(directory);
    if (!synced.ok() && !absl::IsNotFound(synced)) return AsDiskError(synced);
  }
  // Of a write that did not end.
  RUBATO_RETURN_IF_ERROR(AsDiskError(RemoveFile(absl::StrCat(path, ".tmp"))));
  if (rmdir(directory.c_str()) == 0 || errno == ENOTEMPTY || errno == EEXIST || errno == ENOENT) {
    return absl::OkStatus();
  }
  return DiskError(errno, directory, "remove");
}

}  // namespace

absl::Status RunFiles::CheckNew(const v1::JobConfig& config) {
  const std::string& directory = config.run_directory();
  RUBATO_RETURN_IF_ERROR(CheckEmpty(directory, JoinPath(directory, "journal")));
  return CheckEmpty(directory, JoinPath(directory, "metrics.jsonl"));
}

absl::StatusOr<std::unique_ptr<RunFiles>> RunFiles::Open(const v1::JobConfig& config, bool resume,
                                                         absl::string_view boot_id) {
  const std::string& directory = config.run_directory();
  const std::string metrics = JoinPath(directory, "metrics.jsonl");
  auto files = absl::WrapUnique(new RunFiles());
  files->journal_path_ = JoinPath(directory, "journal");
  files->checkpoint_directory_ = CheckpointDirectory(config);
  RUBATO_RETURN_IF_ERROR(AsDiskError(MakeDirectories(directory)));
  if (!resume) RUBATO_RETURN_IF_ERROR(CheckNew(config));
  RUBATO_ASSIGN_OR_RETURN(JournalWriter::Opened journal, JournalWriter::Open(files->journal_path_, boot_id));
  files->journal_ = std::move(journal.writer);
  files->recovered_ = std::move(journal.records);
  RUBATO_RETURN_IF_ERROR(AsDiskError(WriteFileAtomically(JoinPath(directory, "job.textproto"), ConfigText(config))));
  RUBATO_ASSIGN_OR_RETURN(files->metrics_, AppendFile::Open(metrics));
  RUBATO_RETURN_IF_ERROR(CutTornLine(metrics, files->metrics_.get()));
  // A run that never started is begun afresh.
  if (files->recovered_.empty()) RUBATO_RETURN_IF_ERROR(files->metrics_->Truncate(0));
  return files;
}

absl::StatusOr<std::vector<v1::JournalRecord>> RunFiles::ReadBackJournal() const {
  RUBATO_ASSIGN_OR_RETURN(JournalContents contents, ReadJournal(journal_path_));
  return std::move(contents.records);
}

absl::Status RunFiles::AppendMetrics(const v1::RunRecordLine& line) {
  return metrics_->Append(absl::StrCat(RunRecordJson(line), "\n"));
}

absl::Status RunFiles::WriteCutRecord(const std::string& name, const v1::CutRecord& record) {
  RUBATO_RETURN_IF_ERROR(CheckCutName(name));
  const std::string directory = JoinPath(checkpoint_directory_, name);
  RUBATO_RETURN_IF_ERROR(AsDiskError(MakeDirectories(directory)));
  v1::CutRecord versioned = record;
  versioned.set_format_version(kCutFormatVersion);
  return AsDiskError(WriteFileAtomically(JoinPath(directory, kCutRecordName), versioned.SerializeAsString()));
}

absl::Status RunFiles::RemoveCutRecords(const std::vector<std::string>& keep) {
  absl::StatusOr<std::vector<std::string>> names = ListDirectory(checkpoint_directory_);
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  if (!names.ok()) return AsDiskError(names.status());
  absl::Status status;
  for (const std::string& name : *names) {
    const std::string directory = JoinPath(checkpoint_directory_, name);
    std::error_code error;
    // step0 has the initial weights, and is no cut.
    const bool is_cut = StepOfCheckpoint(name) > 0 && std::filesystem::is_directory(directory, error);
    if (is_cut && std::find(keep.begin(), keep.end(), name) == keep.end()) status.Update(RemoveCut(directory));
  }
  return status;
}

}  // namespace rubato::coordinator
