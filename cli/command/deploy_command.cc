#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/command/commands.h"
#include "cli/command/job_control.h"
#include "cli/command/jobs_on_hosts.h"
#include "cli/command/ssh_deploy.h"

namespace rubato {
namespace {

// Adds a subcommand of `rubato deploy ssh` that runs `action`.
CLI::App* AddAction(CLI::App* ssh, const std::string& name, const std::string& description,
                    const Environment* environment, int* exit_code, std::function<absl::Status()> action) {
  CLI::App* command = ssh->add_subcommand(name, description);
  command->callback([name, environment, exit_code, action = std::move(action)] {
    const absl::Status status = action();
    *exit_code = status.ok() ? kExitOk : ReportError(*environment, "deploy ssh " + name, status);
  });
  return command;
}

void AddUp(CLI::App* ssh, const Environment* environment, int* exit_code) {
  auto options = std::make_shared<SshUpOptions>();
  CLI::App* up = AddAction(ssh, "up", "Start a job on the hosts, follow it, and bring its run directory", environment,
                           exit_code, [options, environment] { return SshUp(*options, *environment); });
  up->add_option("HOSTS", options->ssh.hosts_path, "The hosts, a textproto (proto/deployment.proto)")->required();
  up->add_option("CONFIG", options->config_path, "The job's config, a textproto")->required();
  AddSshOptions(up, &options->ssh)->required();
  up->add_option("--command", options->ssh.command,
                 "What the workers run, as in \"python3 train.py\": CONFIG has then no model, data and optimizer");
  up->add_option("--set", options->overrides, "path=value: overrides a field of the config; may be repeated")
      ->allow_extra_args(false);
  up->add_option("--run_directory", options->run_directory,
                 "Where everything is brought to; otherwise the config says so");
  up->add_option("--time_limit", options->time_limit_seconds, "Seconds after which the job is stopped; 0: never")
      ->check(CLI::NonNegativeNumber);
  CLI::Option* overwrite =
      up->add_flag("--overwrite", options->overwrite, "Delete what an earlier run left in the run directory");
  up->add_flag("--resume", options->resume,
               "Go on with the job that an earlier up has started and left on its hosts, whose run directory this is")
      ->excludes(overwrite);
  up->add_flag("--detach", options->detach, "Return once the job has been started");
}

}  // namespace

void AddDeployCommand(CLI::App* app, const Environment* environment, int* exit_code) {
  CLI::App* deploy = app->add_subcommand("deploy", "Run a job on other machines");
  deploy->require_subcommand(1);
  CLI::App* ssh = deploy->add_subcommand("ssh", "Over SSH, which must not ask for a password");
  ssh->require_subcommand(1);
  AddUp(ssh, environment, exit_code);

  struct RunOptions {
    std::string run_directory;
    std::vector<std::string> tasks;
    int lines = 20;
    double seconds = 5;
    std::string output;
    bool remove = false;
    SwitchOptions change;
    StopOptions stop;
    CheckpointNowOptions checkpoint;
  };
  auto run = std::make_shared<RunOptions>();
  const char* const what = "The run directory that up was given";
  AddAction(ssh, "follow", "Go on where an up was interrupted or detached", environment, exit_code,
            [run, environment] { return SshFollow(run->run_directory, *environment); })
      ->add_option("RUN", run->run_directory, what)
      ->required();
  AddAction(ssh, "status", "Show where the job stands, and its tasks on their hosts", environment, exit_code,
            [run, environment] { return SshStatus(run->run_directory, *environment); })
      ->add_option("RUN", run->run_directory, what)
      ->required();
  CLI::App* change = AddAction(ssh, "switch", "Change the mode of the job", environment, exit_code,
                               [run, environment] { return SshSwitch(run->run_directory, run->change, *environment); });
  change->add_option("RUN", run->run_directory, what)->required();
  AddSwitchOptions(change, &run->change);
  CLI::App* stop =
      AddAction(ssh, "stop", "Ask the job to write its weights and end; who follows it brings them", environment,
                exit_code, [run, environment] { return SshStop(run->run_directory, run->stop, *environment); });
  stop->add_option("RUN", run->run_directory, what)->required();
  AddStopOptions(stop, &run->stop);
  CLI::App* checkpoint =
      AddAction(ssh, "checkpoint", "Have the job write a checkpoint, and wait for it", environment, exit_code,
                [run, environment] { return SshCheckpoint(run->run_directory, run->checkpoint, *environment); });
  checkpoint->add_option("RUN", run->run_directory, what)->required();
  AddCheckpointNowOptions(checkpoint, &run->checkpoint);
  CLI::App* trace =
      AddAction(ssh, "trace", "One timeline of all tasks of the job, which trains", environment, exit_code,
                [run, environment] { return SshTrace(run->run_directory, run->seconds, run->output, *environment); });
  trace->add_option("RUN", run->run_directory, what)->required();
  trace->add_option("--seconds", run->seconds, "How long it is recorded, up to 600")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 600.0));
  trace->add_option("--output", run->output, "The file to write; otherwise traces/<number>/merged.json in RUN");
  CLI::App* logs =
      AddAction(ssh, "logs", "Show the last lines of tasks' logs", environment, exit_code,
                [run, environment] { return SshLogs(run->run_directory, run->tasks, run->lines, *environment); });
  logs->add_option("RUN", run->run_directory, what)->required();
  logs->add_option("TASK", run->tasks, "coordinator, server-0, worker-1, ...; otherwise all");
  logs->add_option("--lines", run->lines, "How many of each")->capture_default_str()->check(CLI::Range(1, 100000));
  CLI::App* down =
      AddAction(ssh, "down", "End all processes of the job, and bring its run directory", environment, exit_code,
                [run, environment] { return SshDown(run->run_directory, run->remove, *environment); });
  down->add_option("RUN", run->run_directory, what)->required();
  down->add_flag("--remove", run->remove, "Delete the job's folder on the hosts when it has been brought");
}

}  // namespace rubato
