#ifndef RUBATO_BENCH_JOB_SERVER_H_
#define RUBATO_BENCH_JOB_SERVER_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"

namespace rubato::bench {

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
