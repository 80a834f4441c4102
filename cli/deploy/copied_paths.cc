#include "cli/deploy/copied_paths.h"

#include <filesystem>
#include <system_error>

#include "common/config/data_paths.h"

namespace rubato {

void UseCopiedPaths(const std::vector<std::string>& copies, v1::JobConfig* config) {
  namespace fs = std::filesystem;
  ForEachReadPath(config, [&](std::string* path) {
    for (const std::string& copy : copies) {
      std::error_code error;
      const fs::path inside = fs::path(*path).lexically_relative(fs::absolute(copy, error).lexically_normal());
      if (error || inside.empty() || *inside.begin() == "..") continue;
      *path = inside == "." ? copy : (fs::path(copy) / inside).lexically_normal().string();
      return;
    }
  });
}

}  // namespace rubato
