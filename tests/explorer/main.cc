// Visits every state of a small job, in every order in which its events can come.
//
//   bazel run -c opt //tests/explorer -- --mode=ssp:1 --steps=3 --switch=async --cut
#include <CLI/CLI.hpp>
#include <iostream>
#include <string>

#include "absl/strings/str_format.h"
#include "common/clock.h"
#include "tests/explorer/explore.h"
#include "tests/explorer/job_system.h"
#include "tests/explorer/scope.h"

namespace rubato::explorer {
namespace {

constexpr int kExitOk = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

struct Flags {
  Scope scope;
  std::string mode = "sync";
  std::string switch_to;
  ExploreOptions options;
};

void AddFlags(CLI::App* app, Flags* flags) {
  Scope& scope = flags->scope;
  app->add_option("--mode", flags->mode, "sync, sync:QUORUM, ssp:BOUND or async")->capture_default_str();
  app->add_option("--workers", scope.workers, "Workers")->check(CLI::Range(1, 4))->capture_default_str();
  app->add_option("--servers", scope.servers, "Servers")->check(CLI::Range(1, 2))->capture_default_str();
  app->add_option("--partitions", scope.partitions, "Partitions of each server")
      ->check(CLI::Range(1, 2))
      ->capture_default_str();
  app->add_option("--chunks", scope.chunks, "Chunks of the model")->check(CLI::Range(2, 4))->capture_default_str();
  app->add_option("--chunks-per-message", scope.chunks_per_message, "Chunks that travel together, of one partition")
      ->check(CLI::Range(1, 4))
      ->capture_default_str();
  app->add_option("--steps", scope.steps, "Steps of each worker")->check(CLI::Range(1, 9))->capture_default_str();
  app->add_flag("--stay", scope.stay, "Workers do not leave after their steps, and do nothing");
  app->add_option("--switch", flags->switch_to, "The operator switches to this mode once");
  app->add_flag("--cut", scope.cut, "The operator asks for a checkpoint once");
  app->add_flag("--crash-worker", scope.crash_worker, "A worker dies");
  app->add_flag("--break-stream", scope.break_stream, "A stream between worker and server breaks");
  app->add_flag("--repeat", scope.repeat, "A request comes twice");
  app->add_flag("--timeout", scope.timeout, "A partition's requests time out once");
  app->add_flag("--crash-coordinator", scope.crash_coordinator, "The coordinator dies and is started again");
  app->add_flag("--crash-server", scope.crash_server, "A server dies, and the job goes back; needs --stay");
  app->add_option("--max-states", flags->options.max_states, "Gives up after so many states, with exit status 1")
      ->check(CLI::PositiveNumber);
}

int Run(const Flags& flags) {
  RealClock clock;
  std::cout << Describe(flags.scope) << std::endl;
  const absl::Time begin = clock.Now();
  JobSystem system(flags.scope);
  const Exploration result = Explore(&system, flags.options);
  if (!result.violation.empty()) {
    for (const std::string& line : system.Tell(result.path)) std::cout << "  " << line << "\n";
    std::cout << result.violation << "\n";
  }
  const char* verdict = !result.violation.empty() ? "violated"
                        : result.complete         ? "I1 to I5 and I7 held (complete)"
                                                  : "I1 to I5 and I7 held in these; INCOMPLETE, see --max-states";
  std::cout << absl::StreamFormat("%d states, %d transitions, depth %d, %d ends, %.3g orders, %.1f s: %s\n",
                                  result.states, result.transitions, result.depth, result.ends, result.orders,
                                  absl::ToDoubleSeconds(clock.Now() - begin), verdict);
  return result.complete ? kExitOk : kExitFailed;
}

// InvalidArgument names the flag.
absl::Status ReadModes(Flags* flags) {
  absl::StatusOr<simulation::Rules> rules = ParseRules(flags->mode);
  if (!rules.ok()) return rules.status();
  flags->scope.start = *rules;
  if (flags->switch_to.empty()) return absl::OkStatus();
  rules = ParseRules(flags->switch_to);
  if (!rules.ok()) return rules.status();
  flags->scope.switch_to = *rules;
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Visits every order of events of a small job, and judges each by the invariants.", "explorer");
  AddFlags(&app, &flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  if (flags.scope.crash_server && !flags.scope.stay) {
    std::cerr << "explorer: --crash-server needs --stay: a worker that has left does not come back\n";
    return kExitUsage;
  }
  if (absl::Status status = ReadModes(&flags); !status.ok()) {
    std::cerr << "explorer: " << status.message() << "\n";
    return kExitUsage;
  }
  return Run(flags);
}

}  // namespace
}  // namespace rubato::explorer

int main(int argc, char** argv) { return rubato::explorer::Main(argc, argv); }
