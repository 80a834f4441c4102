#include "cli/launch/worker_command.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <system_error>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/launch/local_program.h"
#include "common/status.h"

namespace rubato {
namespace {

namespace fs = std::filesystem;

constexpr char kLibrary[] = "librubato_client.so";
constexpr char kThreads[] = "OMP_NUM_THREADS";

// The first of these that is a file, absolute, because workers may run elsewhere; empty if none is.
std::string FirstFile(std::initializer_list<fs::path> paths) {
  for (const fs::path& path : paths) {
    std::error_code error;
    if (fs::is_regular_file(path, error)) return fs::absolute(path, error).lexically_normal().string();
  }
  return "";
}

// Takes words off a command line.
class WordSplitter {
 public:
  explicit WordSplitter(const std::string& line) : line_(line) {}

  // Absent: there are no more, or a quote is open.
  std::optional<std::string> Next() {
    while (at_ < line_.size() && absl::ascii_isspace(static_cast<unsigned char>(line_[at_]))) ++at_;
    if (at_ == line_.size()) return std::nullopt;
    std::string word;
    while (at_ < line_.size()) {
      const char c = line_[at_++];
      if (quote_ == 0 && absl::ascii_isspace(static_cast<unsigned char>(c))) return word;
      if (c == quote_) {
        quote_ = 0;
      } else if (quote_ == 0 && (c == '\'' || c == '"')) {
        quote_ = c;
      } else if (c == '\\' && IsEscape()) {
        word += line_[at_++];
      } else {
        word += c;
      }
    }
    if (quote_ != 0) return std::nullopt;
    return word;
  }

  bool quote_is_open() const { return quote_ != 0; }

 private:
  // Whether the backslash before `at_` takes the meaning of what follows it.
  bool IsEscape() const {
    if (at_ == line_.size() || quote_ == '\'') return false;
    return quote_ == 0 || line_[at_] == '"' || line_[at_] == '\\';
  }

  const std::string& line_;
  size_t at_ = 0;
  char quote_ = 0;
};

}  // namespace

absl::StatusOr<WorkerCommand> MakeWorkerCommand(const std::vector<std::string>& argv, const std::string& flag,
                                                const std::string& program) {
  if (argv.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": no command is given; allowed: what a worker runs, as in python train.py"));
  }
  WorkerCommand command;
  command.argv = argv;
  const absl::StatusOr<std::string> path = FindProgram(argv[0]);
  if (!path.ok()) return absl::InvalidArgumentError(absl::StrCat(flag, ": ", path.status().message()));
  command.argv[0] = *path;
  const fs::path folder = fs::path(program).parent_path();
  const fs::path client = folder / "../../client";
  command.library = FirstFile({folder / kLibrary, client / kLibrary});
  command.sidecar = FirstFile({folder / "rubato-sidecar", client / "rubato-sidecar", client / "sidecar/rubato-sidecar",
                               client / "sidecar/sidecar"});
  return command;
}

absl::StatusOr<std::vector<std::string>> SplitCommand(const std::string& line, const std::string& flag) {
  WordSplitter splitter(line);
  std::vector<std::string> words;
  while (std::optional<std::string> word = splitter.Next()) words.push_back(*std::move(word));
  if (splitter.quote_is_open()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": value \"", line, "\": a quote is not closed; allowed: a command as a shell reads it"));
  }
  if (words.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": value \"", line, "\"; allowed: what a worker runs, as in \"python train.py\""));
  }
  return words;
}

void ShareCores(uint32_t workers, WorkerCommand* command) {
  if (const char* said = std::getenv(kThreads); said != nullptr) {
    // It may be a list, of nested loops.
    if (!absl::SimpleAtoi(said, &command->threads)) command->threads = 0;
    return;
  }
  command->threads = std::max(1u, std::thread::hardware_concurrency() / std::max(1u, workers));
  command->variables.push_back(absl::StrCat(kThreads, "=", command->threads));
}

std::vector<std::string> WorkerVariables(const WorkerCommand& command, const std::string& coordinator,
                                         const WorkerPlace& place) {
  std::vector<std::string> variables = {absl::StrCat("RUBATO_COORDINATOR=", coordinator),
                                        absl::StrCat("RUBATO_RANK=", place.rank),
                                        absl::StrCat("RUBATO_SIZE=", place.size),
                                        absl::StrCat("RUBATO_LOCAL_RANK=", place.local_rank),
                                        absl::StrCat("RUBATO_LOCAL_SIZE=", place.local_size),
                                        "PYTHONUNBUFFERED=1"};
  if (!command.library.empty()) variables.push_back(absl::StrCat("RUBATO_LIBRARY=", command.library));
  if (!command.sidecar.empty()) variables.push_back(absl::StrCat("RUBATO_SIDECAR=", command.sidecar));
  if (!place.slow.empty()) variables.push_back(absl::StrCat("RUBATO_SLOW=", place.slow));
  if (!place.network.empty()) variables.push_back(absl::StrCat("RUBATO_NETWORK=", place.network));
  variables.insert(variables.end(), command.variables.begin(), command.variables.end());
  return variables;
}

}  // namespace rubato
