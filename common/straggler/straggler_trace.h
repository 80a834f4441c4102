#ifndef RUBATO_COMMON_STRAGGLER_STRAGGLER_TRACE_H_
#define RUBATO_COMMON_STRAGGLER_STRAGGLER_TRACE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/straggler/straggler_model.h"

namespace rubato {

// ParseStraggler, and the file of a trace is read: a number of seconds in each line, 0 to 600. Its path becomes an
// absolute one. Errors of ParseStraggler and, for the file, of ReadFile; InvalidArgument: it is longer than 64 MiB, has
// no lines, or one that is no such number.
absl::StatusOr<StragglerModel> LoadStraggler(absl::string_view text);

// The same of a flag or variable of that name. Empty: nothing is slowed down. Errors name flag and value.
absl::StatusOr<StragglerModel> LoadStragglerOf(absl::string_view name, absl::string_view text);

}  // namespace rubato

#endif  // RUBATO_COMMON_STRAGGLER_STRAGGLER_TRACE_H_
