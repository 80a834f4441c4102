#include "common/available_memory.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace rubato {
namespace {

namespace fs = std::filesystem;

// The number behind the word `key` in a file of lines "<key> <number> ...".
std::optional<int64_t> NumberOf(const fs::path& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key + " ", 0) == 0) return std::strtoll(line.c_str() + key.size(), nullptr, 10);
  }
  return std::nullopt;
}

// The number that the file is; nothing if it is "max" or there is no such file.
std::optional<int64_t> NumberIn(const fs::path& path) {
  std::ifstream file(path);
  int64_t number = 0;
  if (!(file >> number)) return std::nullopt;
  return number;
}

// What the limit of one group leaves; nothing if it has none.
std::optional<int64_t> LeftInGroup(const fs::path& group) {
  const std::optional<int64_t> limit = NumberIn(group / "memory.max"), used = NumberIn(group / "memory.current");
  if (!limit.has_value() || !used.has_value()) return std::nullopt;
  const int64_t reclaimable = NumberOf(group / "memory.stat", "inactive_file").value_or(0);
  return std::max<int64_t>(0, *limit - *used + reclaimable);
}

// The process's group, as a path below the root of groups.
fs::path GroupOfProcess(const fs::path& root) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("0::/", 0) == 0) return line.substr(4);
  }
  return "";
}

}  // namespace

std::optional<int64_t> AvailableMemoryBytes(const std::string& root) {
  const std::optional<int64_t> kib = NumberOf(fs::path(root) / "proc/meminfo", "MemAvailable:");
  if (!kib.has_value()) return std::nullopt;
  int64_t available = *kib * 1024;
  // A group's limit binds all groups in it.
  const fs::path groups = fs::path(root) / "sys/fs/cgroup";
  for (fs::path group = GroupOfProcess(root);; group = group.parent_path()) {
    available = std::min(available, LeftInGroup(groups / group).value_or(available));
    if (group.empty()) return available;
  }
}

}  // namespace rubato
