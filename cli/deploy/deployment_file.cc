#include "cli/deploy/deployment_file.h"

#include <google/protobuf/text_format.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/config/config_text.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

std::string PathIn(const std::string& run_directory) { return JoinPath(run_directory, "deployment.textproto"); }

// It becomes part of paths and of a command line.
bool GoodJobId(const std::string& id) {
  return !id.empty() && std::all_of(id.begin(), id.end(),
                                    [](unsigned char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_'; });
}

}  // namespace

absl::Status SaveDeployment(const v1::Deployment& deployment, const std::string& run_directory) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(deployment, &text);
  return WriteFileAtomically(PathIn(run_directory), text);
}

absl::StatusOr<v1::Deployment> LoadDeployment(const std::string& run_directory) {
  const std::string path = PathIn(run_directory);
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) {
    return absl::NotFoundError(
        absl::StrCat(text.status().message(), "; is ", run_directory, " where rubato deploy ssh up started a job?"));
  }
  v1::Deployment deployment;
  RUBATO_RETURN_IF_ERROR(ParseText(*text, path, &deployment));
  bool good = GoodJobId(deployment.job_id()) && deployment.tasks_size() > 0;
  for (const v1::DeployedTask& task : deployment.tasks()) {
    good = good && task.host() < static_cast<uint32_t>(deployment.hosts().hosts_size());
  }
  if (!good) return absl::InvalidArgumentError(absl::StrCat(path, ": not as rubato deploy ssh up writes it"));
  return deployment;
}

}  // namespace rubato
