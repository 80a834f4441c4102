#include <memory>
#include <string>
#include <vector>

#include "cli/command/commands.h"
#include "common/config/fingerprint.h"
#include "common/config/load.h"

namespace rubato {
namespace {

struct ConfigOptions {
  std::string path;
  std::vector<std::string> overrides;
  bool client = false;
};

}  // namespace

void AddConfigCommand(CLI::App* app, const Environment* environment, int* exit_code) {
  CLI::App* command = app->add_subcommand("config", "Check a job's config and print it with all defaults");
  auto options = std::make_shared<ConfigOptions>();
  command->add_option("CONFIG", options->path, "The job's config, a textproto")->required();
  command->add_option("--set", options->overrides, "path=value: overrides a field of the config; may be repeated")
      ->allow_extra_args(false);
  command->add_flag("--client", options->client, "It may be without model, data and optimizer, which clients bring");
  command->callback([options, environment, exit_code] {
    absl::StatusOr<v1::JobConfig> config =
        LoadJobConfig(options->path, options->overrides, {.may_await_model = options->client});
    if (config.ok()) *environment->out << ConfigText(*config) << std::flush;
    *exit_code = config.ok() ? kExitOk : ReportError(*environment, "config", config.status());
  });
}

}  // namespace rubato
