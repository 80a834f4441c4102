#include "cli/command/chosen_runs.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

std::string NameOf(const std::string& directory) {
  const size_t slash = directory.rfind('/');
  return slash == std::string::npos ? directory : directory.substr(slash + 1);
}

absl::Status AddComparison(const std::string& name, const std::string& directory, std::vector<ChosenRun>* runs) {
  const std::string path = JoinPath(directory, "summary.json");
  RUBATO_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const auto summary = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto bad = [&](const std::string& what) { return absl::InvalidArgumentError(absl::StrCat(path, ": ", what)); };
  if (!summary.is_object() || !summary.contains("modes") || !summary["modes"].is_array()) return bad("has no modes");
  for (const auto& mode : summary["modes"]) {
    if (!mode.is_object() || !mode.contains("mode") || !mode["mode"].is_string()) return bad("a mode has no name");
    if (!mode.contains("runs") || !mode["runs"].is_array()) return bad("a mode has no runs");
    for (const auto& run : mode["runs"]) {
      if (!run.is_object() || !run.contains("directory") || !run["directory"].is_string()) {
        return bad("a run has no directory");
      }
      const auto own = mode["mode"].get<std::string>();
      runs->push_back({name.empty() ? own : absl::StrCat(name, " ", own),
                       JoinPath(directory, run["directory"].get<std::string>())});
    }
  }
  return absl::OkStatus();
}

// "sync-seed2" is of mode "sync".
std::string WithoutSeed(const std::string& name) {
  const size_t seed = name.rfind("-seed");
  const bool is_seed =
      seed != std::string::npos && seed > 0 && seed + 5 < name.size() &&
      std::all_of(name.begin() + static_cast<std::ptrdiff_t>(seed) + 5, name.end(), absl::ascii_isdigit);
  return is_seed ? name.substr(0, seed) : name;
}

// False: there are none.
bool AddBegunRuns(const std::string& name, const std::string& directory, std::vector<ChosenRun>* runs) {
  const std::vector<std::string> entries = ListDirectory(directory).value_or(std::vector<std::string>());
  bool found = false;
  for (const std::string& entry : entries) {
    const std::string run = JoinPath(directory, entry);
    if (!FileExists(JoinPath(run, "metrics.jsonl"))) continue;
    const std::string own = WithoutSeed(entry);
    runs->push_back({name.empty() ? own : absl::StrCat(name, " ", own), run});
    found = true;
  }
  return found;
}

absl::StatusOr<std::vector<ChosenRun>> Find(const std::vector<std::string>& texts, bool so_far) {
  std::vector<ChosenRun> runs;
  for (const std::string& text : texts) {
    // A directory whose name has a "=" is one all the same.
    const size_t equals = FileExists(text) ? std::string::npos : text.find('=');
    if (equals == 0) return absl::InvalidArgumentError(absl::StrCat("RUN: \"", text, "\" has an empty name"));
    std::string name = equals == std::string::npos ? "" : text.substr(0, equals);
    std::string directory = equals == std::string::npos ? text : text.substr(equals + 1);
    while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
    if (FileExists(JoinPath(directory, "metrics.jsonl"))) {
      runs.push_back({name.empty() ? NameOf(directory) : std::move(name), std::move(directory)});
    } else if (FileExists(JoinPath(directory, "summary.json"))) {
      RUBATO_RETURN_IF_ERROR(AddComparison(name, directory, &runs));
    } else if (!so_far || !AddBegunRuns(name, directory, &runs)) {
      return absl::NotFoundError(absl::StrCat("RUN: ", directory, ": holds neither a run nor a comparison"));
    }
  }
  return runs;
}

}  // namespace

absl::StatusOr<std::vector<ChosenRun>> FindRuns(const std::vector<std::string>& texts) {
  return Find(texts, /*so_far=*/false);
}

absl::StatusOr<std::vector<ChosenRun>> FindRunsSoFar(const std::vector<std::string>& texts) {
  return Find(texts, /*so_far=*/true);
}

}  // namespace rubato
