#include "cli/deploy/package.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/launch/local_program.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

absl::StatusOr<Archive> OpenArchive(const std::string& path) {
  Archive archive;
  archive.path = path;
  RUBATO_ASSIGN_OR_RETURN(const uint64_t bytes, FileBytes(path));
  archive.bytes = static_cast<int64_t>(bytes);
  const absl::StatusOr<std::string> sum = RunProgram({"sha256sum", "--", path});
  if (!sum.ok()) return sum.status();
  // A name with a backslash or a line break has one more backslash before the sum.
  archive.id = sum->substr(sum->find_first_not_of('\\'), 16);
  return archive;
}

absl::Status CheckDataPath(const std::string& path) {
  const std::vector<std::string> parts = absl::StrSplit(path, '/');
  const bool bad = path.empty() || absl::StartsWith(path, "/") || absl::StartsWith(path, "-") ||
                   std::find(parts.begin(), parts.end(), "..") != parts.end();
  if (bad || !FileExists(path)) {
    return absl::InvalidArgumentError(absl::StrCat("--copy: value \"", path,
                                                   "\"; allowed: the relative path, without \"..\", of a file or "
                                                   "folder that is there"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Package> OpenPackage(const std::string& path) {
  Package package;
  RUBATO_ASSIGN_OR_RETURN(package.archive, OpenArchive(path));
  const absl::StatusOr<std::string> manifest =
      RunProgram({"tar", "-xzf", path, "--to-stdout", "--wildcards", "--occurrence", "rubato-*/MANIFEST"});
  if (!manifest.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--package: ", path, " is no package (./rubato.sh package makes ",
                                                   "one): ", manifest.status().message()));
  }
  for (absl::string_view line : absl::StrSplit(*manifest, '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.size() != 2) continue;
    if (words[0] == "machine") package.machine = words[1];
    if (words[0] == "glibc") package.glibc = words[1];
  }
  if (package.machine.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--package: the manifest of ", path, " names no machine"));
  }
  return package;
}

absl::StatusOr<Archive> PackData(const std::vector<std::string>& paths, const std::string& output) {
  std::vector<std::string> argv = {"tar",   "--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner",
                                   "-chzf", output,        "--"};
  for (const std::string& path : paths) {
    RUBATO_RETURN_IF_ERROR(CheckDataPath(path));
    argv.push_back(path);
  }
  RUBATO_RETURN_IF_ERROR(RunProgram(std::move(argv)).status());
  return OpenArchive(output);
}

}  // namespace rubato
