#ifndef RUBATO_COMMON_STORAGE_CHECKPOINT_LIST_H_
#define RUBATO_COMMON_STORAGE_CHECKPOINT_LIST_H_

#include <string>
#include <vector>

namespace rubato {

// Names of the complete checkpoints in a checkpoint directory, in the order in which a job writes them: step0, step<E>
// with ascending E, stopped, final. One of a cut is complete where its record, the file `cut`, can be read; another
// where all servers' manifests are there. Data are not checked. Empty where there is no such directory.
std::vector<std::string> ListCheckpoints(const std::string& checkpoint_directory);

}  // namespace rubato

#endif  // RUBATO_COMMON_STORAGE_CHECKPOINT_LIST_H_
