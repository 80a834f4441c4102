#ifndef RUBATO_COMMON_STORAGE_CHECKPOINT_LIST_H_
#define RUBATO_COMMON_STORAGE_CHECKPOINT_LIST_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/coordinator.pb.h"

namespace rubato {

// Names of the complete checkpoints in a checkpoint directory, in the order in which a job wrote them: step0, its cuts
// (step<E> and stopped) in the order of their ids, final. One of a cut is complete if its record, the file `cut`, can
// be read; another if all servers' manifests are there. Data are not checked. Empty if there is no such directory.
std::vector<std::string> ListCheckpoints(const std::string& checkpoint_directory);

// Removes this task's parts of all checkpoints "step<number>" but of those named and of "step0", which holds what the
// job began with; and directories that this leaves empty. Errors are the disk's; what can be removed is removed all the
// same. With `of_others` also other tasks' parts that are of an earlier cut of the same job than the newest of the
// checkpoints named: of tasks that are gone, and copies that this task keeps. Newer ones may just be written.
absl::Status KeepParts(const std::string& checkpoint_directory, const v1::TaskId& task,
                       const std::vector<std::string>& names, bool of_others = false);

}  // namespace rubato

#endif  // RUBATO_COMMON_STORAGE_CHECKPOINT_LIST_H_
