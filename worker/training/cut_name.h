#ifndef RUBATO_WORKER_TRAINING_CUT_NAME_H_
#define RUBATO_WORKER_TRAINING_CUT_NAME_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace rubato::worker {

// Whether a directory's name is that of a checkpoint of a job that trains: "step" and a number. Pure, as below.
bool IsStepCut(absl::string_view name);

// InvalidArgument unless it is that, or "stopped": a name comes from another process, and is made a part of paths.
absl::Status CheckCutName(absl::string_view name);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TRAINING_CUT_NAME_H_
