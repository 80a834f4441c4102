#include "cli/launch/local_program.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/launch/child_process.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

constexpr int kErrorLines = 10;

// A folder that goes with its object.
class ScratchFolder {
 public:
  ScratchFolder() : made_(mkdtemp(path_) != nullptr) {}
  ~ScratchFolder() {
    std::error_code ignored;
    if (made_) std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  bool made() const { return made_; }
  std::string Path(absl::string_view name) const { return JoinPath(path_, name); }

 private:
  char path_[32] = "/tmp/rubato-run-XXXXXX";
  const bool made_;
};

}  // namespace

absl::StatusOr<std::string> FindProgram(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (access(name.c_str(), X_OK) == 0) return name;
    return absl::NotFoundError(absl::StrCat(name, ": no program that can be run"));
  }
  const char* path = getenv("PATH");
  for (absl::string_view folder : absl::StrSplit(path == nullptr ? "/usr/bin:/bin" : path, ':', absl::SkipEmpty())) {
    std::string candidate = absl::StrCat(folder, "/", name);
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return absl::NotFoundError(absl::StrCat("no program \"", name, "\" in the PATH"));
}

absl::StatusOr<std::string> RunProgram(std::vector<std::string> argv) {
  const std::string name = argv[0];
  RUBATO_ASSIGN_OR_RETURN(argv[0], FindProgram(name));
  const ScratchFolder scratch;
  if (!scratch.made()) return absl::ErrnoToStatus(errno, "/tmp: no folder can be made");
  const ChildProcess::Streams streams = {.output = scratch.Path("out"), .errors = scratch.Path("err")};
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<ChildProcess> process, ChildProcess::Start(argv, streams));
  std::optional<ExitResult> result;
  while (!(result = process->Poll()).has_value()) {
    struct pollfd event = {process->descriptor(), POLLIN, 0};
    poll(&event, 1, 1000);
  }
  if (result->ok()) return ReadFile(streams.output);
  std::string said = LastLines(streams.errors, kErrorLines);
  absl::StripAsciiWhitespace(&said);
  return absl::AbortedError(absl::StrCat(name, " ended with ", result->Describe(), said.empty() ? "" : ": ", said));
}

}  // namespace rubato
