#include "coordinator/record/run_files.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/config/fingerprint.h"
#include "common/status.h"
#include "common/storage/run_record_json.h"

namespace rubato::coordinator {
namespace {

namespace fs = std::filesystem;

absl::Status WriteText(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) return absl::UnavailableError(absl::StrCat(path, ": cannot be written"));
  return absl::OkStatus();
}

// A process that died may have left half a line, which is not a line of the record.
absl::Status CutTornLine(const std::string& path) {
  std::error_code error;
  uintmax_t size = fs::file_size(path, error);
  if (error) return absl::OkStatus();  // There is none.
  std::ifstream file(path, std::ios::binary);
  uintmax_t whole = size;
  for (char last = 0; whole > 0; --whole) {
    file.seekg(static_cast<std::streamoff>(whole) - 1);
    if (!file.get(last)) return absl::UnavailableError(absl::StrCat(path, ": cannot be read"));
    if (last == '\n') break;
  }
  if (whole == size) return absl::OkStatus();
  fs::resize_file(path, whole, error);
  return error ? absl::UnavailableError(absl::StrCat(path, ": ", error.message())) : absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunFiles>> RunFiles::Open(const v1::JobConfig& config, bool resume) {
  const std::string& directory = config.run_directory();
  const std::string journal = absl::StrCat(directory, "/journal");
  auto files = absl::WrapUnique(new RunFiles());
  files->metrics_path_ = absl::StrCat(directory, "/metrics.jsonl");
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return absl::UnavailableError(absl::StrCat(directory, ": cannot be created: ", error.message()));
  for (const std::string& path : {journal, files->metrics_path_}) {
    // A coordinator that could not listen leaves empty files.
    const uintmax_t size = fs::file_size(path, error);
    if (resume || error || size == 0) continue;
    return absl::AlreadyExistsError(
        absl::StrCat("run_directory ", directory, " holds an earlier run (", path,
                     "); choose another run_directory, remove it, or continue that run with --resume"));
  }
  absl::StatusOr<JournalContents> contents = ReadJournal(journal);
  if (!contents.ok() && !absl::IsNotFound(contents.status())) return contents.status();
  const int64_t bytes = contents.ok() ? contents->bytes : 0;
  if (contents.ok()) files->recovered_ = std::move(contents->records);
  RUBATO_RETURN_IF_ERROR(WriteText(absl::StrCat(directory, "/job.textproto"), ConfigText(config)));
  RUBATO_RETURN_IF_ERROR(CutTornLine(files->metrics_path_));
  RUBATO_ASSIGN_OR_RETURN(files->journal_, JournalWriter::Open(journal, bytes));
  // A run that never started is begun afresh.
  const auto mode = files->recovered_.empty() ? std::ios::trunc : std::ios::app;
  files->metrics_.open(files->metrics_path_, std::ios::binary | std::ios::out | mode);
  if (!files->metrics_) return absl::UnavailableError(absl::StrCat(files->metrics_path_, ": cannot be opened"));
  return files;
}

absl::Status RunFiles::AppendMetrics(const v1::RunRecordLine& line) {
  metrics_ << RunRecordJson(line) << std::endl;
  if (!metrics_) return absl::UnavailableError(absl::StrCat(metrics_path_, ": cannot be written"));
  return absl::OkStatus();
}

}  // namespace rubato::coordinator
