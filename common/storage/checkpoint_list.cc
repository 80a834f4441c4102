#include "common/storage/checkpoint_list.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
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

// A place among the others: the cut's id, and of what is older the step.
using Place = std::pair<uint64_t, int64_t>;
constexpr uint64_t kLast = std::numeric_limits<uint64_t>::max();

// Nothing: it is not complete.
std::optional<Place> PlaceOf(const std::string& directory, const std::string& name) {
  if (const absl::StatusOr<v1::CutRecord> record = ReadCutRecord(directory); record.ok()) {
    return Place(record->cut().id(), record->plan().first_step());
  }
  const int64_t step = StepOfCheckpoint(name);
  if (step > 0 || !ServersOfCheckpoint(directory).ok()) return std::nullopt;
  if (step == 0) return Place(0, 0);
  // A "stopped" of a program that knew no cuts.
  return Place(kLast, name == "final" ? 1 : 0);
}

absl::Status RemovePart(const std::string& directory, const std::string& part) {
  const std::string path = JoinPath(directory, part);
  // The manifest first: a part without data would otherwise seem to be there.
  for (const char* suffix : {".manifest", ".data"}) RUBATO_RETURN_IF_ERROR(RemoveFile(path + suffix));
  RUBATO_RETURN_IF_ERROR(RemoveUnfinishedPart(directory, part));
  std::error_code not_empty;  // Others' parts are theirs to remove.
  std::filesystem::remove(directory, not_empty);
  return absl::OkStatus();
}

struct PartFound {
  std::string name;
  std::string job;
  uint64_t cut = 0;
};

// All parts that are there.
std::vector<PartFound> PartsIn(const std::string& directory) {
  std::vector<PartFound> parts;
  for (const std::string& file : ListDirectory(directory).value_or(std::vector<std::string>())) {
    absl::string_view name = file;
    if (!absl::ConsumeSuffix(&name, ".manifest")) continue;
    const absl::StatusOr<std::string> bytes = ReadFile(JoinPath(directory, file));
    v1::CheckpointManifest manifest;
    if (!bytes.ok() || !manifest.ParseFromString(*bytes)) continue;
    parts.push_back({.name = std::string(name), .job = manifest.job_name(), .cut = manifest.cut().id()});
  }
  return parts;
}

// The one with the highest cut in these checkpoints; cut 0 if there is none.
PartFound NewestPart(const std::string& checkpoint_directory, const std::vector<std::string>& names) {
  PartFound newest;
  for (const std::string& name : names) {
    for (PartFound& part : PartsIn(JoinPath(checkpoint_directory, name))) {
      if (part.cut > newest.cut) newest = std::move(part);
    }
  }
  return newest;
}

}  // namespace

std::vector<std::string> ListCheckpoints(const std::string& checkpoint_directory) {
  std::vector<std::pair<Place, std::string>> found;
  for (std::string& name : ListDirectory(checkpoint_directory).value_or(std::vector<std::string>())) {
    if (!IsCheckpointName(name)) continue;
    const std::optional<Place> place = PlaceOf(JoinPath(checkpoint_directory, name), name);
    if (place.has_value()) found.emplace_back(*place, std::move(name));
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (auto& [place, name] : found) names.push_back(std::move(name));
  return names;
}

absl::Status KeepParts(const std::string& checkpoint_directory, const v1::TaskId& task,
                       const std::vector<std::string>& names, bool of_others) {
  absl::StatusOr<std::vector<std::string>> found = ListDirectory(checkpoint_directory);
  if (absl::IsNotFound(found.status())) return absl::OkStatus();
  RUBATO_RETURN_IF_ERROR(found.status());
  const PartFound newest = of_others ? NewestPart(checkpoint_directory, names) : PartFound();
  absl::Status status;
  for (const std::string& name : *found) {
    const bool kept = name == "step0" || std::find(names.begin(), names.end(), name) != names.end();
    if (kept || StepOfCheckpoint(name) < 0) continue;
    const std::string directory = JoinPath(checkpoint_directory, name);
    for (const PartFound& part : of_others ? PartsIn(directory) : std::vector<PartFound>()) {
      if (part.job == newest.job && part.cut < newest.cut) status.Update(RemovePart(directory, part.name));
    }
    status.Update(RemovePart(directory, CheckpointPartName(task.role(), task.index())));
  }
  return status;
}

}  // namespace rubato
