#ifndef RUBATO_CLI_COMMAND_MODE_CHOICE_H_
#define RUBATO_CLI_COMMAND_MODE_CHOICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/job_config.pb.h"

namespace rubato {

// A consistency mode as the user writes it: "sync", "async", "ssp:2".
struct ModeChoice {
  v1::Mode mode = v1::MODE_UNSPECIFIED;
  // SSP only.
  int64_t staleness_bound = 0;

  // As the user writes it.
  std::string Name() const;
  // The same, fit for the name of a directory: "ssp2".
  std::string DirectoryName() const;
};

// InvalidArgument for anything else, or a bound outside [1, 2^20]. `option` is the name in the message.
absl::StatusOr<ModeChoice> ParseMode(const std::string& text, const std::string& option);

// A list without repetitions. InvalidArgument also when it is empty.
absl::StatusOr<std::vector<ModeChoice>> ParseModes(const std::vector<std::string>& texts, const std::string& option);

// The mode that a config starts in.
ModeChoice ModeOfConfig(const v1::JobConfig& config);

// The config with this mode from beginning to end: scheduled changes and a policy are taken out, and a quorum if it
// does not apply. InvalidArgument when the result is not a valid config.
absl::StatusOr<v1::JobConfig> ConfigInMode(const v1::JobConfig& config, const ModeChoice& mode);

}  // namespace rubato

#endif  // RUBATO_CLI_COMMAND_MODE_CHOICE_H_
