#ifndef RUBATO_CLI_DEPLOY_SSH_H_
#define RUBATO_CLI_DEPLOY_SSH_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/launch/child_process.h"
#include "cli/launch/stop_signals.h"
#include "common/clock.h"
#include "proto/deployment.pb.h"

namespace rubato {

// A script to run on a host.
struct SshCall {
  // Index into the hosts.
  int host = 0;
  std::string script;
  // File that the script reads.
  std::string input = "/dev/null";
  // "NAME=value" for the script and what it starts, with no character that a shell minds; empty: nothing.
  std::string environment;
};

struct SshResult {
  // Unavailable: ssh did not get through, or the time was over. Cancelled: a signal came. Aborted: the script ended
  // with another status than 0; the message is what it wrote to its standard error. Each message begins with the host's
  // name.
  absl::Status status;
  // File with what the script wrote to its standard output. Goes with the Ssh object.
  std::string output_path;
};

// Runs scripts on hosts through the system's ssh program, which is never asked for a password. Not thread-safe; used in
// the main thread. What it has started ends with it: on this machine at once, on a host when it next writes.
//
//   RUBATO_ASSIGN_OR_RETURN(auto ssh, Ssh::Create(hosts, config, clock, signals));
//   for (const SshResult& result : ssh->Run({{.host = 0, .script = "uname -m"}}, absl::Seconds(20))) ...
class Ssh {
 public:
  // The pointers outlive it. NotFound: there is no ssh program. InvalidArgument: the identity file cannot be read.
  static absl::StatusOr<std::unique_ptr<Ssh>> Create(const v1::HostsConfig& hosts, const v1::SshConfig& config,
                                                     const Clock* clock, StopSignals* signals);
  ~Ssh();
  Ssh(const Ssh&) = delete;
  Ssh& operator=(const Ssh&) = delete;

  // Runs all scripts at the same time and returns their results in the same order. One call takes no longer than
  // `timeout`. A signal ends all of them unless `heed_signals` is false.
  std::vector<SshResult> Run(const std::vector<SshCall>& calls, absl::Duration timeout, bool heed_signals = true);

  // A script that runs on meanwhile. What it writes is in `output_path`.
  struct Running {
    std::unique_ptr<ChildProcess> process;
    std::string output_path;
    std::string errors_path;
  };
  absl::StatusOr<Running> Start(const SshCall& call);

  // Makes `port` of the host itself reachable as a Unix socket of this machine, whose path is in `socket_path`, as long
  // as the process lives. The socket is not there yet.
  absl::StatusOr<Running> Forward(int host, uint32_t port, std::string* socket_path);

  // What a call's end says, as in SshResult.
  absl::Status Outcome(int host, const ExitResult& result, const std::string& errors_path) const;

  const std::string& HostName(int host) const { return hosts_.hosts(host).host(); }

 private:
  Ssh(const v1::HostsConfig& hosts, const v1::SshConfig& config, std::string program, std::string scratch,
      const Clock* clock, StopSignals* signals)
      : hosts_(hosts), config_(config), program_(program), scratch_(scratch), clock_(clock), signals_(signals) {}
  // Up to the host's name.
  std::vector<std::string> Arguments(int host) const;
  std::string NewPath(const std::string& suffix);
  absl::StatusOr<Running> Launch(int host, std::vector<std::string> argv, const std::string& input);

  const v1::HostsConfig hosts_;
  const v1::SshConfig config_;
  const std::string program_;
  // A folder of its own for output files and sockets.
  const std::string scratch_;
  const Clock* const clock_;
  StopSignals* const signals_;
  int files_ = 0;
};

}  // namespace rubato

#endif  // RUBATO_CLI_DEPLOY_SSH_H_
