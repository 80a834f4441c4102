#ifndef RUBATO_BENCH_JOB_SERVER_H_
#define RUBATO_BENCH_JOB_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/security/identity.h"
#include "common/security/task_security.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"

namespace rubato::bench {

// Of server 0 or worker 0, with the credentials that the config names; null if it names none. Errors of
// TaskSecurity::Create.
absl::StatusOr<std::shared_ptr<const TaskSecurity>> OpenSecurity(const v1::JobConfig& config, Party party);

// The only server of a job without a coordinator.
v1::ServerInfo TheServer();

// A ServerCore behind an ExchangeServer on 127.0.0.1, as in the server's own main, that has been told the job and its
// first plan. Tells `ready` where it is and serves until a connection closes.
absl::Status ServeJob(const v1::JobConfig& config, const v1::JobDescription& job, const v1::Plan& plan,
                      const std::function<void(const v1::ServerInfo&)>& ready);

// What a server's process said of itself with ShortDebugString.
absl::StatusOr<v1::ServerInfo> ParseServerInfo(const std::string& text);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_JOB_SERVER_H_
