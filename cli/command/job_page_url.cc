#include "cli/command/job_page_url.h"

#include "absl/strings/str_cat.h"
#include "common/security/operator_token.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {

absl::StatusOr<std::string> JobPageUrl(const std::string& run_directory) {
  RUBATO_ASSIGN_OR_RETURN(const std::string address, ReadFile(JoinPath(run_directory, "page.address")));
  RUBATO_ASSIGN_OR_RETURN(const std::string token, ReadOperatorToken(run_directory));
  return absl::StrCat("http://", address.substr(0, address.find('\n')), "/#token=", token);
}

}  // namespace rubato
