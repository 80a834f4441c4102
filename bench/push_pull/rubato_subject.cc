#include "bench/push_pull/rubato_subject.h"

#include <utility>

#include "bench/job_server.h"
#include "bench/push_pull/rubato_server.h"
#include "bench/push_pull/rubato_single.h"
#include "bench/push_pull/rubato_steps.h"
#include "common/status.h"

namespace rubato::bench {

absl::Status ServeRubato(const Setup& setup, const Ready& ready) {
  return ServeRubatoJob(setup, v1::ClusterConfig::OFF, ready);
}

absl::StatusOr<std::unique_ptr<Client>> ConnectRubato(const Setup& setup, const std::string& address) {
  RUBATO_ASSIGN_OR_RETURN(const v1::ServerInfo server, ParseServerInfo(address));
  RUBATO_ASSIGN_OR_RETURN(RubatoJob job, MakeRubatoJob(setup, v1::ClusterConfig::OFF, server));
  return setup.in_flight == 1 ? ConnectRubatoSingle(setup, std::move(job)) : ConnectRubatoSteps(setup, std::move(job));
}

absl::Status ServeRubatoShm(const Setup& setup, const Ready& ready) {
  return ServeRubatoJob(setup, v1::ClusterConfig::AUTO, ready);
}

absl::StatusOr<std::unique_ptr<Client>> ConnectRubatoShm(const Setup& setup, const std::string& address) {
  RUBATO_ASSIGN_OR_RETURN(const v1::ServerInfo server, ParseServerInfo(address));
  RUBATO_ASSIGN_OR_RETURN(RubatoJob job, MakeRubatoJob(setup, v1::ClusterConfig::AUTO, server));
  return ConnectRubatoSteps(setup, std::move(job));
}

}  // namespace rubato::bench
