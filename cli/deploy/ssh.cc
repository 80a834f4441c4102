#include "cli/deploy/ssh.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cli/deploy/shell.h"
#include "cli/launch/local_program.h"
#include "common/status.h"

namespace rubato {
namespace {

// What ssh itself ends with when it does not get through.
constexpr int kSshFailed = 255;
constexpr int kErrorLines = 15;

}  // namespace

absl::StatusOr<std::unique_ptr<Ssh>> Ssh::Create(const v1::HostsConfig& hosts, const v1::SshConfig& config,
                                                 const Clock* clock, StopSignals* signals) {
  RUBATO_ASSIGN_OR_RETURN(std::string program, FindProgram(config.program().empty() ? "ssh" : config.program()));
  if (!config.identity().empty() && access(config.identity().c_str(), R_OK) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--identity: value \"", config.identity(), "\"; allowed: a file that can be read"));
  }
  // A short path: a Unix socket's has at most 107 characters.
  char scratch[] = "/tmp/rubato-ssh-XXXXXX";
  if (mkdtemp(scratch) == nullptr) return absl::ErrnoToStatus(errno, "/tmp: no folder can be made");
  return absl::WrapUnique(new Ssh(hosts, config, std::move(program), scratch, clock, signals));
}

Ssh::~Ssh() {
  std::error_code ignored;
  std::filesystem::remove_all(scratch_, ignored);
}

std::vector<std::string> Ssh::Arguments(int host) const {
  const v1::HostConfig& target = hosts_.hosts(host);
  std::vector<std::string> argv = {program_};
  // The first value that ssh is given for an option is the one that holds.
  for (const std::string& option : config_.options()) argv.insert(argv.end(), {"-o", option});
  for (const char* option : {"BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=3", "ServerAliveCountMax=3",
                             "LogLevel=ERROR", "ControlPath=none", "ForwardX11=no", "ForwardAgent=no"}) {
    argv.insert(argv.end(), {"-o", option});
  }
  if (!config_.identity().empty()) {
    argv.insert(argv.end(), {"-o", "IdentitiesOnly=yes", "-i", config_.identity()});
  }
  if (!target.user().empty()) argv.insert(argv.end(), {"-l", target.user()});
  if (target.port() > 0) argv.insert(argv.end(), {"-p", absl::StrCat(target.port())});
  return argv;
}

std::string Ssh::NewPath(const std::string& suffix) { return absl::StrCat(scratch_, "/", files_++, suffix); }

absl::StatusOr<Ssh::Running> Ssh::Launch(int host, std::vector<std::string> argv, const std::string& input) {
  Running running;
  running.output_path = NewPath(".out");
  running.errors_path = NewPath(".err");
  absl::StatusOr<std::unique_ptr<ChildProcess>> process = ChildProcess::Start(
      argv, ChildProcess::Streams{.input = input, .output = running.output_path, .errors = running.errors_path});
  if (!process.ok()) return Annotate(process.status(), HostName(host));
  running.process = *std::move(process);
  return running;
}

absl::StatusOr<Ssh::Running> Ssh::Start(const SshCall& call) {
  std::vector<std::string> argv = Arguments(call.host);
  argv.insert(argv.end(), {"-T", "--", HostName(call.host), RemoteCommand(call.script, call.environment)});
  return Launch(call.host, std::move(argv), call.input);
}

absl::StatusOr<Ssh::Running> Ssh::Forward(int host, uint32_t port, std::string* socket_path) {
  *socket_path = NewPath(".sock");
  std::vector<std::string> argv = Arguments(host);
  argv.insert(argv.end(), {"-N", "-T", "-o", "ExitOnForwardFailure=yes", "-L",
                           absl::StrCat(*socket_path, ":127.0.0.1:", port), "--", HostName(host)});
  return Launch(host, std::move(argv), "/dev/null");
}

absl::Status Ssh::Outcome(int host, const ExitResult& result, const std::string& errors_path) const {
  if (result.ok()) return absl::OkStatus();
  std::string said = LastLines(errors_path, kErrorLines);
  absl::StripAsciiWhitespace(&said);
  said = absl::StrReplaceAll(said, {{"\n", "\n    "}});
  if (said.empty()) said = absl::StrCat("it ended with ", result.Describe());
  const bool unreached = result.code == kSshFailed || result.signal != 0;
  return absl::Status(unreached ? absl::StatusCode::kUnavailable : absl::StatusCode::kAborted,
                      absl::StrCat(HostName(host), ": ", said));
}

std::vector<SshResult> Ssh::Run(const std::vector<SshCall>& calls, absl::Duration timeout, bool heed_signals) {
  std::vector<SshResult> results(calls.size());
  std::vector<std::optional<Running>> running(calls.size());
  for (size_t i = 0; i < calls.size(); ++i) {
    absl::StatusOr<Running> started = Start(calls[i]);
    results[i].status = started.status();
    if (!started.ok()) continue;
    results[i].output_path = started->output_path;
    running[i] = *std::move(started);
  }
  const absl::Time deadline = clock_->Now() + timeout;
  while (true) {
    std::vector<struct pollfd> events;
    if (heed_signals) events.push_back({signals_->descriptor(), POLLIN, 0});
    const size_t idle = events.size();
    for (size_t i = 0; i < calls.size(); ++i) {
      if (!running[i].has_value()) continue;
      const std::optional<ExitResult> result = running[i]->process->Poll();
      if (!result.has_value()) {
        events.push_back({running[i]->process->descriptor(), POLLIN, 0});
        continue;
      }
      results[i].status = Outcome(calls[i].host, *result, running[i]->errors_path);
      running[i].reset();
    }
    if (events.size() == idle) return results;
    absl::Status end;
    if (clock_->Now() >= deadline) {
      end = absl::UnavailableError(absl::StrCat("no answer within ", absl::FormatDuration(timeout),
                                                " (the host, or its login's start-up files such as ~/.bashrc)"));
    }
    if (heed_signals && signals_->Take()) end = absl::CancelledError("stopped by a signal");
    if (!end.ok()) {
      for (size_t i = 0; i < calls.size(); ++i) {
        if (running[i].has_value()) results[i].status = Annotate(end, HostName(calls[i].host));
      }
      return results;  // What runs is killed with its object.
    }
    const int64_t left = absl::ToInt64Milliseconds(deadline - clock_->Now());
    poll(events.data(), static_cast<nfds_t>(events.size()), static_cast<int>(std::clamp<int64_t>(left, 1, 1000)));
  }
}

}  // namespace rubato
