#include "cli/command/run_directory.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

namespace fs = std::filesystem;

constexpr std::array<absl::string_view, 12> kRunFiles = {"job.textproto", "deployment.textproto",
                                                         "metrics.jsonl", "coordinator.address",
                                                         "summary.json",  "report.html",
                                                         "logs",          "checkpoints",
                                                         "tensorboard",   "traces",
                                                         "page.address",  "credentials"};

absl::Status FileSystemError(const std::string& path, const std::error_code& error) {
  return absl::UnavailableError(absl::StrCat(path, ": ", error.message()));
}

// Who belongs to the job: made before its run, and good for the next one.
bool HoldsCredentials(const fs::path& path) { return path.filename() == "credentials"; }

bool WrittenByARun(const fs::path& path) {
  std::string name = path.filename().string();
  absl::string_view whole = absl::StripSuffix(name, ".tmp");
  for (absl::string_view known : kRunFiles) {
    if (whole == known) return true;
  }
  return absl::StartsWith(name, "journal") || absl::StartsWith(name, "updates-server") ||
         absl::EndsWith(whole, ".safetensors");
}

// The first entry that no run has written, or an empty path. A comparison has its runs in directories of their own.
fs::path ForeignEntry(const fs::path& directory, bool comparison) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    if (WrittenByARun(entry.path())) continue;
    bool run = comparison && entry.is_directory(error) && !entry.is_symlink(error);
    if (!run) return entry.path();
    if (fs::path foreign = ForeignEntry(entry.path(), false); !foreign.empty()) return foreign;
  }
  return {};
}

}  // namespace

absl::Status PrepareRunDirectory(const std::string& directory, bool overwrite) {
  RUBATO_RETURN_IF_ERROR(MakeDirectories(directory));
  std::error_code error;
  const fs::directory_iterator entries(directory, error);
  if (error) return FileSystemError(directory, error);
  const bool empty = std::all_of(fs::begin(entries), fs::end(entries), HoldsCredentials);
  if (empty) return absl::OkStatus();
  if (!overwrite) {
    return absl::AlreadyExistsError(absl::StrCat("run_directory: ", directory,
                                                 " is not empty; choose another one with --run_directory, go on with "
                                                 "the run that it holds with --resume, or let --overwrite delete what "
                                                 "an earlier run left there"));
  }
  if (fs::path foreign = ForeignEntry(directory, true); !foreign.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("--overwrite: ", foreign.string(), " was not written by a run; nothing is deleted"));
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    if (HoldsCredentials(entry.path())) continue;
    fs::remove_all(entry.path(), error);
    if (error) return FileSystemError(entry.path().string(), error);
  }
  return error ? FileSystemError(directory, error) : absl::OkStatus();
}

absl::StatusOr<std::string> CoordinatorAddress(const std::string& text) {
  std::error_code error;
  if (fs::is_directory(text, error)) {
    std::string path = JoinPath(text, "coordinator.address");
    absl::StatusOr<std::string> address = ReadFile(path);
    if (!address.ok()) {
      return absl::NotFoundError(absl::StrCat(address.status().message(), "; is ", text, " the directory of a run?"));
    }
    return address->substr(0, address->find('\n'));
  }
  if (!absl::StrContains(text, ':')) {
    return absl::InvalidArgumentError(
        absl::StrCat("ADDRESS: value \"", text, "\"; allowed: host:port, or the directory of a run"));
  }
  return text;
}

}  // namespace rubato
