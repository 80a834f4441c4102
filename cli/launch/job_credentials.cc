#include "cli/launch/job_credentials.h"

#include "common/security/credentials.h"
#include "common/security/open_security.h"

namespace rubato {
namespace {

// Longer than jobs take; they can be renewed while one runs.
constexpr absl::Duration kLifetime = absl::Hours(24 * 90);

}  // namespace

std::vector<Identity> IdentitiesOf(const v1::JobConfig& config) {
  const v1::ClusterConfig& cluster = config.cluster();
  std::vector<Identity> identities = {{config.name(), Party::kCoordinator, 0}, {config.name(), Party::kOperator, 0}};
  const auto add = [&](Party party, uint32_t count) {
    for (uint32_t index = 0; index < count; ++index) identities.push_back({config.name(), party, index});
  };
  add(Party::kServer, cluster.servers());
  add(Party::kWorker, cluster.workers());
  add(Party::kEvaluator, cluster.evaluators());
  return identities;
}

absl::Status MakeJobCredentials(const v1::JobConfig& config, absl::Time now) {
  if (config.security().insecure() || !config.security().credentials().empty()) return absl::OkStatus();
  return WriteCredentials(CredentialsFolder(config), config.name(), IdentitiesOf(config), {now, kLifetime});
}

}  // namespace rubato
