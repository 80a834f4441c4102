// The sidecar of a client's process, which starts it: librubato_client.so (client/rubato_client.h). SIGTERM lets the
// client's worker leave the job after the step at work; SIGINT, which a terminal sends to both, is the client's. Ends
// when the client does. Exit codes: 0 the client has ended or closed, 2 bad flags.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <string>

#include "client/sidecar/sidecar.h"
#include "common/clock.h"
#include "common/network_link/link_model.h"
#include "common/stop_watcher.h"
#include "common/straggler/straggler_trace.h"
#include "common/transport/process_tuning.h"

namespace {

// What a client's process had open when it started this one and did not mean to pass on.
void CloseOthers(int descriptor) {
#ifdef SYS_close_range
  syscall(SYS_close_range, descriptor + 1, ~0u, 0);
#else
  static_cast<void>(descriptor);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  rubato::UseHugePages();
  rubato::TuneProcess();
  rubato::ScheduleAsBatch();
  CLI::App app("Rubato sidecar: the worker of a client's process, which starts it.");
  int descriptor = 3;
  bool quiet = false;
  std::string slow, network, metrics_listen, credentials;
  app.add_option("--descriptor", descriptor, "the socket whose other end the client has")
      ->capture_default_str()
      ->check(CLI::Range(3, 65535));
  app.add_flag("--quiet", quiet, "only warnings and errors in the log");
  app.add_option("--slow", slow, "how the worker is slowed down, as in x3 or sleep=30ms+bimodal=x6,0.125; default: not")
      ->envname("RUBATO_SLOW");
  app.add_option("--network", network,
                 "the network link that the worker is put behind, as in latency=10ms,rate=100mbit; default: none")
      ->envname("RUBATO_NETWORK");
  app.add_option(
         "--metrics_listen", metrics_listen,
         "host:port to answer HTTP requests for /metrics and /healthz on; port 0 picks a free one; default: none")
      ->envname("RUBATO_METRICS_LISTEN");
  app.add_option("--credentials", credentials,
                 "the folder of the job's credentials, credentials in its run directory; default: none")
      ->envname("RUBATO_CREDENTIALS");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const absl::StatusOr<rubato::StragglerModel> model = rubato::LoadStragglerOf("RUBATO_SLOW", slow);
  if (!model.ok()) {
    std::cerr << "rubato-sidecar: " << model.status().message() << "\n";
    return 2;
  }
  const absl::StatusOr<rubato::LinkModel> link = rubato::ParseLinkOf("RUBATO_NETWORK", network);
  if (!link.ok()) {
    std::cerr << "rubato-sidecar: " << link.status().message() << "\n";
    return 2;
  }
  if (fcntl(descriptor, F_GETFD) < 0) {
    std::cerr << "rubato-sidecar: is started by librubato_client.so, and not by hand\n";
    return 2;
  }
  fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  CloseOthers(descriptor);
  rubato::RealClock clock;
  // Has no threads yet: those that come leave signals to the watcher.
  rubato::client::Sidecar sidecar({.descriptor = descriptor,
                                   .quiet = quiet,
                                   .slow = *model,
                                   .network = *link,
                                   .metrics_listen = metrics_listen,
                                   .credentials = credentials,
                                   .clock = &clock});
  rubato::StopWatcher watcher([&sidecar](absl::string_view signal) {
    if (signal == "SIGTERM") sidecar.Drain();
  });
  sidecar.Run();
  return 0;
}
