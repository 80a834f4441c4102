// The coordinator. Exit codes: 0 the job is done, 1 it failed, 2 bad flags or config.
#include <grpcpp/grpcpp.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/config/load.h"
#include "common/log.h"
#include "common/random.h"
#include "common/stop_watcher.h"
#include "common/storage/file.h"
#include "coordinator/coordinator_service.h"

namespace {

using rubato::coordinator::CoordinatorService;

struct Flags {
  std::string config_path;
  std::vector<std::string> overrides;
  std::string listen = "0.0.0.0:7070";
  std::string port_file;
  bool resume = false;
};

int Complain(const absl::Status& status) {
  std::cerr << status.message() << "\n";
  return 2;
}

// The address with the port that was taken.
absl::StatusOr<std::unique_ptr<grpc::Server>> Listen(CoordinatorService* service, std::string* address) {
  grpc::ServerBuilder builder;
  int port = 0;
  // Two coordinators on one port would share its connections.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort(*address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    return absl::UnavailableError(
        absl::StrCat("--listen: cannot listen on ", *address, "; the port is taken, or the host is not this one"));
  }
  *address = absl::StrCat(address->substr(0, address->rfind(':')), ":", port);
  return server;
}

int Run(const Flags& flags) {
  absl::StatusOr<rubato::v1::JobConfig> config = rubato::LoadJobConfig(flags.config_path, flags.overrides);
  if (!config.ok()) return Complain(config.status());
  if (absl::Status status = rubato::MakeDirectories(config->run_directory()); !status.ok()) return Complain(status);

  rubato::RealClock clock;
  rubato::Logger log("coordinator", &clock);
  CoordinatorService::Options options;
  options.core.config = *config;
  options.core.config_fingerprint = rubato::ConfigFingerprint(*config);
  options.core.job_fingerprint = rubato::SystemRandom64();
  options.core.start = clock.Now();
  options.run_directory = config->run_directory();
  options.resume = flags.resume;
  options.clock = &clock;
  options.log = &log;
  absl::StatusOr<std::unique_ptr<CoordinatorService>> service = CoordinatorService::Create(std::move(options));
  if (!service.ok()) return Complain(service.status());
  std::string address = flags.listen;
  absl::StatusOr<std::unique_ptr<grpc::Server>> server = Listen(service->get(), &address);
  if (!server.ok()) return Complain(server.status());
  log.Info(absl::StrCat("job ", config->name(), ", listens on ", address));
  if (!flags.port_file.empty()) {
    if (absl::Status status = rubato::WriteFileAtomically(flags.port_file, address); !status.ok()) {
      return Complain(status);
    }
  }
  absl::Status status;
  {
    rubato::StopWatcher watcher(
        [&](absl::string_view signal) { (*service)->RequestStop(absl::StrCat("stopped by ", signal)); });
    status = (*service)->AwaitFinish();
  }
  (*server)->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  if (status.ok()) return 0;
  log.Error(status.message());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Rubato coordinator: says who takes part in a job, and under which consistency rule.");
  Flags flags;
  app.add_option("--config", flags.config_path, "the job's textproto")->required();
  app.add_option("--set", flags.overrides, "override a field of the config: path=value")->expected(1)->take_all();
  app.add_option("--listen", flags.listen, "host:port to listen on; port 0 picks a free one")->capture_default_str();
  app.add_option("--port_file", flags.port_file, "write the address listened on to this file");
  app.add_flag("--resume", flags.resume, "go on with the job whose journal is in the run directory");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return Run(flags);
}
