#include "common/storage/checkpoint_list.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

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

}  // namespace rubato
