#include <google/protobuf/stubs/common.h>
#include <grpcpp/grpcpp.h>
#include <poll.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/command/commands.h"
#include "cli/command/job_findings.h"
#include "cli/command/named_job.h"
#include "cli/doctor/disk_speed.h"
#include "cli/doctor/exchange_probe.h"
#include "cli/doctor/judge.h"
#include "cli/doctor/machine.h"
#include "cli/launch/coordinator_client.h"
#include "cli/launch/stop_signals.h"
#include "common/config/load.h"
#include "common/config/local_sgd.h"
#include "common/model_spec.h"
#include "common/status.h"
#include "common/task.h"
#include "common/transport/process_tuning.h"
#include "kernels/backend_cuda.h"
#include "kernels/optimizer/compensation.h"
#include "kernels/optimizer/update_rule.h"
#include "worker/data/open_dataset.h"
#include "worker/device/backend_choice.h"

namespace rubato {
namespace {

constexpr int64_t kDiskBytes = int64_t{64} << 20;
constexpr absl::Duration kExchange = absl::Seconds(1);
constexpr absl::Duration kStatus = absl::Seconds(10);

struct DoctorOptions {
  std::string config_path;
  std::vector<std::string> overrides;
  std::vector<std::string> peers;
  std::vector<int> ports = {7070};
  JobChoice job;
  bool serve = false;
  std::string listen = "0.0.0.0:7071";
};

Finding Versions() {
  return {Verdict::kOk, "versions",
          absl::StrFormat("protocol %d, gRPC %s, protobuf %s, compiler %s", kProtocolVersion, grpc::Version(),
                          google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION), __VERSION__),
          ""};
}

JobNeeds NeedsOf(const v1::JobConfig& config, const ModelSpec& model) {
  JobNeeds needs;
  for (const TensorSpec& tensor : model.tensors) {
    needs.weight_bytes += NumElements(tensor.shape) * static_cast<int64_t>(sizeof(float));
  }
  const v1::ClusterConfig& cluster = config.cluster();
  // Two versions of the weights and the optimizer's slots; and what compensation for staleness keeps: its slot, and the
  // weights that each worker computes from.
  int64_t arrays = 2 + NumSlots(ServerOptimizer(config).algorithm());
  if (const auto formula = CompensationFormulaOf(config.consistency().compensation())) {
    arrays += NumSlots(*formula) + (ReadsPulledWeights(*formula) ? cluster.workers() : 0);
  }
  needs.server_bytes = needs.weight_bytes * arrays;
  needs.tasks = static_cast<int>(1 + cluster.servers() + cluster.workers() + cluster.evaluators());
  return needs;
}

Finding Bad(const std::string& subject, const absl::Status& status, const std::string& next_step) {
  return {Verdict::kProblem, subject, std::string(status.message()), next_step};
}

// Reads the job, and looks whether its data can be read.
absl::StatusOr<JobNeeds> ExamineJob(const DoctorOptions& options, v1::JobConfig* config,
                                    std::vector<Finding>* findings) {
  RUBATO_ASSIGN_OR_RETURN(*config, LoadJobConfig(options.config_path, options.overrides));
  RUBATO_ASSIGN_OR_RETURN(const ModelSpec model, BuildModelSpec(config->model()));
  const JobNeeds needs = NeedsOf(*config, model);
  findings->push_back({Verdict::kOk, "config",
                       absl::StrFormat("job %s: %d tasks, %.1f MiB of weights", config->name(), needs.tasks,
                                       static_cast<double>(needs.weight_bytes) / (1 << 20)),
                       ""});
  absl::StatusOr<std::shared_ptr<const worker::Dataset>> data =
      worker::OpenDataset(*config, model, worker::Split::kTrain);
  findings->push_back(data.ok() ? Finding{Verdict::kOk, "data", absl::StrCat((*data)->size(), " examples"), ""}
                                : Bad("data", data.status(), "fetch the files, or mend data in the config"));
  return needs;
}

Finding Device(const v1::TrainingConfig& training) {
  absl::StatusOr<worker::ChosenBackend> chosen =
      worker::ChooseBackend(training, nullptr, {.cuda = CreateCudaBackend, .count_gpus = CountCudaDevices});
  return JudgeDevice(chosen.ok() ? absl::StatusOr<std::string>(chosen->description) : chosen.status());
}

Finding Loopback(const JobNeeds& needs, const Clock* clock) {
  absl::StatusOr<std::unique_ptr<ProbeServer>> server = ProbeServer::Create("127.0.0.1:0");
  if (!server.ok()) return JudgeLoopback(server.status(), needs);
  return JudgeLoopback(MeasureExchange(absl::StrCat("127.0.0.1:", (*server)->port()), kExchange, clock), needs);
}

int Report(const std::vector<Finding>& findings, const Environment& environment) {
  *environment.out << FormatFindings(findings) << std::flush;
  return HasProblem(findings) ? kExitFailed : kExitOk;
}

// A running job, and nothing that would disturb it.
int ExamineRunning(const JobChoice& job, const Environment& environment) {
  const absl::StatusOr<NamedJob> named = FindRunningJob(job, environment.clock->Now());
  if (!named.ok()) return ReportError(environment, "doctor", named.status());
  const absl::StatusOr<v1::JobStatus> status = CoordinatorClient(named->address, named->security).GetStatus(kStatus);
  if (status.ok()) return Report(JudgeJob(*status), environment);
  return Report({Bad("coordinator", ExplainSilence(*named, status.status()),
                     "see whether it runs, and whether its port can be reached")},
                environment);
}

int Examine(const DoctorOptions& options, const Environment& environment) {
  std::vector<Finding> findings = {Versions()};
  v1::JobConfig config;
  // What a job without a config would have.
  config.mutable_training()->set_compute_threads(1);
  config.set_run_directory("runs");
  JobNeeds needs;
  if (!options.config_path.empty()) {
    absl::StatusOr<JobNeeds> found = ExamineJob(options, &config, &findings);
    if (!found.ok()) {
      findings.push_back(Bad("config", found.status(), "mend the config"));
    } else {
      needs = *found;
    }
  }
  findings.push_back(JudgeCpu(MeasureCpu()));
  findings.push_back(Device(config.training()));
  findings.push_back(JudgeMemory(MeasureMemory(), needs));
  findings.push_back(JudgeSharedMemory(TrySharedMemory()));
  findings.push_back(JudgeOpenFiles(OpenFilesLimit(), needs));
  findings.push_back(JudgeLockedMemory(LockedMemoryLimit()));
  findings.push_back(JudgeClock(MeasureClock()));
  for (int port : options.ports) findings.push_back(JudgePort(port, TryPort(port)));
  findings.push_back(JudgeDisk(MeasureDisk(config.run_directory(), kDiskBytes, environment.clock), needs));
  findings.push_back(Loopback(needs, environment.clock));
  for (const std::string& peer : options.peers) {
    findings.push_back(JudgePeer(peer, MeasureExchange(peer, kExchange, environment.clock), needs));
  }
  return Report(findings, environment);
}

absl::Status Serve(const std::string& listen, const Environment& environment) {
  // Before any other thread, so that all of them leave the signals alone.
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<StopSignals> signals, StopSignals::Create());
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<ProbeServer> probe, ProbeServer::Create(listen));
  *environment.out << "Answers on port " << probe->port() << " until Ctrl-C" << std::endl;
  pollfd event = {.fd = signals->descriptor(), .events = POLLIN, .revents = 0};
  while (!signals->Take()) poll(&event, 1, -1);
  return absl::OkStatus();
}

int Doctor(const DoctorOptions& options, const Environment& environment) {
  TuneProcess();
  ScheduleAsBatch();
  if (!options.job.place.empty()) return ExamineRunning(options.job, environment);
  if (!options.serve) return Examine(options, environment);
  const absl::Status status = Serve(options.listen, environment);
  return status.ok() ? kExitOk : ReportError(environment, "doctor", status);
}

}  // namespace

void AddDoctorCommand(CLI::App* app, const Environment* environment, int* exit_code) {
  CLI::App* command =
      app->add_subcommand("doctor", "Examine this machine, and the network to others, or a running job");
  auto options = std::make_shared<DoctorOptions>();
  CLI::Option* config =
      command->add_option("--config", options->config_path, "A job's config: also whether the job fits");
  command->add_option("--set", options->overrides, "path=value: overrides a field of the config; may be repeated")
      ->allow_extra_args(false);
  CLI::Option* peer =
      command->add_option("--peer", options->peers, "host:port of a `rubato doctor --serve`; may be repeated")
          ->allow_extra_args(false);
  command->add_option("--port", options->ports, "A port that has to be free; may be repeated")
      ->allow_extra_args(false)
      ->capture_default_str()
      ->check(CLI::Range(0, 65535));
  CLI::Option* serve =
      command->add_flag("--serve", options->serve, "Be the peer of another machine's doctor, until Ctrl-C");
  command
      ->add_option("--job", options->job.place,
                   "A running job instead of this machine: the coordinator's host:port, or the run's directory")
      ->excludes(config)
      ->excludes(peer)
      ->excludes(serve);
  command->add_option(
      "--credentials", options->job.credentials,
      "With --job: the folder with an operator's credentials; default: credentials in the run's directory");
  command->add_option("--listen", options->listen, "host:port of --serve; port 0 takes a free one")
      ->capture_default_str();
  command->callback([options, environment, exit_code] { *exit_code = Doctor(*options, *environment); });
}

}  // namespace rubato
