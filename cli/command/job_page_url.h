#ifndef RUBATO_CLI_COMMAND_JOB_PAGE_URL_H_
#define RUBATO_CLI_COMMAND_JOB_PAGE_URL_H_

#include <string>

#include "absl/status/statusor.h"

namespace rubato {

// Where the job of a run directory shows its page, with the operator's token behind a "#", which no browser sends to
// anybody. NotFound: it shows none, or has ended. Errors of ReadOperatorToken.
absl::StatusOr<std::string> JobPageUrl(const std::string& run_directory);

}  // namespace rubato

#endif  // RUBATO_CLI_COMMAND_JOB_PAGE_URL_H_
