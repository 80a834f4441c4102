#include "common/storage/checkpoint_list.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "common/storage/checkpoint.h"
#include "common/storage/cut_record.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

constexpr int64_t kLast = std::numeric_limits<int64_t>::max();

// A place among the others; -1: not a name of a checkpoint.
int64_t PlaceOf(const std::string& name) {
  if (name == "final") return kLast;
  if (name == "stopped") return kLast - 1;
  return StepOfCheckpoint(name);
}

bool IsComplete(const std::string& directory, const std::string& name) {
  if (ReadCutRecord(directory).ok()) return true;
  return StepOfCheckpoint(name) <= 0 && ServersOfCheckpoint(directory).ok();
}

absl::Status RemovePart(const std::string& directory, const std::string& part) {
  const std::string path = JoinPath(directory, part);
  // The manifest first: a part without data would otherwise seem to be there.
  for (const char* suffix : {".manifest", ".manifest.tmp", ".data", ".data.tmp"}) {
    RUBATO_RETURN_IF_ERROR(RemoveFile(path + suffix));
  }
  std::error_code not_empty;  // Others' parts are theirs to remove.
  std::filesystem::remove(directory, not_empty);
  return absl::OkStatus();
}

// Of all parts that are there: name and cut.
std::vector<std::pair<std::string, uint64_t>> PartsIn(const std::string& directory) {
  std::vector<std::pair<std::string, uint64_t>> parts;
  for (const std::string& file : ListDirectory(directory).value_or(std::vector<std::string>())) {
    absl::string_view name = file;
    if (!absl::ConsumeSuffix(&name, ".manifest")) continue;
    const absl::StatusOr<std::string> bytes = ReadFile(JoinPath(directory, file));
    v1::CheckpointManifest manifest;
    if (bytes.ok() && manifest.ParseFromString(*bytes)) parts.emplace_back(name, manifest.cut().id());
  }
  return parts;
}

}  // namespace

std::vector<std::string> ListCheckpoints(const std::string& checkpoint_directory) {
  std::vector<std::pair<int64_t, std::string>> found;
  for (std::string& name : ListDirectory(checkpoint_directory).value_or(std::vector<std::string>())) {
    const int64_t place = PlaceOf(name);
    if (place < 0 || !IsComplete(JoinPath(checkpoint_directory, name), name)) continue;
    found.emplace_back(place, std::move(name));
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (auto& [place, name] : found) names.push_back(std::move(name));
  return names;
}

absl::Status KeepParts(const std::string& checkpoint_directory, const v1::TaskId& task,
                       const std::vector<std::string>& names, bool copies) {
  absl::StatusOr<std::vector<std::string>> found = ListDirectory(checkpoint_directory);
  if (absl::IsNotFound(found.status())) return absl::OkStatus();
  RUBATO_RETURN_IF_ERROR(found.status());
  uint64_t newest = 0;
  for (const std::string& name : copies ? names : std::vector<std::string>()) {
    for (const auto& [part, cut] : PartsIn(JoinPath(checkpoint_directory, name))) newest = std::max(newest, cut);
  }
  absl::Status status;
  for (const std::string& name : *found) {
    const bool kept = name == "step0" || std::find(names.begin(), names.end(), name) != names.end();
    if (kept || StepOfCheckpoint(name) < 0) continue;
    const std::string directory = JoinPath(checkpoint_directory, name);
    if (copies) {
      for (const auto& [part, cut] : PartsIn(directory)) {
        if (cut < newest) status.Update(RemovePart(directory, part));
      }
    }
    status.Update(RemovePart(directory, CheckpointPartName(task.role(), task.index())));
  }
  return status;
}

}  // namespace rubato
