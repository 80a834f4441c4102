#ifndef RUBATO_COMMON_CONFIG_LOAD_H_
#define RUBATO_COMMON_CONFIG_LOAD_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/config/fingerprint.h"
#include "proto/job_config.pb.h"

namespace rubato {

struct LoadOptions {
  // A config without model, data and optimizer is good: a client will say what is trained (client_job.h). Otherwise
  // they are missing.
  bool may_await_model = false;
};

// Reads a job's textproto, applies "path=value" overrides in order (common/config/overrides.h), fills in the defaults,
// names of layers included, checks the whole, and makes the paths of files that the job reads absolute
// (common/config/data_paths.h). Whether these exist is not checked: another machine may have them.
//
//   RUBATO_ASSIGN_OR_RETURN(v1::JobConfig config, LoadJobConfig("job.textproto", {"training.epochs=3"}));
//
// NotFound, PermissionDenied, ...: the file cannot be read; the message names it. InvalidArgument: with all errors of
// one kind, a line each: "<path>:<line>:<column>: <why>" for the text, "--set ..." for overrides, and
// "<field path>: value <value>; allowed: <allowed>" for what they say.
absl::StatusOr<v1::JobConfig> LoadJobConfig(const std::string& path, const std::vector<std::string>& overrides,
                                            LoadOptions options = {});

// The same for a text in memory, whose paths stay as they are; `name` stands for the file's path in messages.
absl::StatusOr<v1::JobConfig> ParseJobConfig(const std::string& text, absl::string_view name,
                                             const std::vector<std::string>& overrides, LoadOptions options = {});

}  // namespace rubato

#endif  // RUBATO_COMMON_CONFIG_LOAD_H_
