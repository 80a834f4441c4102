#include <memory>

#include "cli/audit/audit.h"
#include "cli/command/commands.h"

namespace rubato {
namespace {

struct AuditOptions {
  std::string run_directory;
  bool json = false;
};

int Audit(const AuditOptions& options, const Environment& environment) {
  absl::StatusOr<AuditReport> report = AuditRun(options.run_directory);
  if (!report.ok()) return ReportError(environment, "audit", report.status());
  *environment.out << (options.json ? AuditJson(*report) : FormatAudit(*report)) << std::flush;
  return report->held() ? kExitOk : kExitFailed;
}

}  // namespace

void AddAuditCommand(CLI::App* app, const Environment* environment, int* exit_code) {
  CLI::App* command = app->add_subcommand("audit", "Replay a run's update logs and check its guarantees");
  auto options = std::make_shared<AuditOptions>();
  command->add_option("RUN", options->run_directory, "The run's directory")->required();
  command->add_flag("--json", options->json, "One line of JSON");
  command->callback([options, environment, exit_code] { *exit_code = Audit(*options, *environment); });
}

}  // namespace rubato
