#include "common/config/checkpoint_directory.h"

#include "common/storage/file.h"

namespace rubato {

std::string CheckpointDirectory(const v1::JobConfig& config) {
  const std::string& directory = config.checkpoint().directory();
  return directory.empty() ? JoinPath(config.run_directory(), "checkpoints") : directory;
}

}  // namespace rubato
