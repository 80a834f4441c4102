#ifndef RUBATO_CLI_COMMAND_RUNS_PAGE_H_
#define RUBATO_CLI_COMMAND_RUNS_PAGE_H_

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cli/command/chosen_runs.h"
#include "cli/command/run_follower.h"
#include "common/mutex.h"
#include "common/page/page_server.h"

namespace rubato {

// The page of runs by their directories, whether they have ended or go on, and of others as they come.
class RunsPage final : public PageSource {
 public:
  // The runs that there are now, each with a record. Called by one thread at a time.
  using FindRuns = std::function<absl::StatusOr<std::vector<ChosenRun>>()>;

  // `on_error` is told of each thing that cannot be read, once.
  RunsPage(FindRuns find, std::function<void(absl::string_view)> on_error)
      : find_(std::move(find)), on_error_(std::move(on_error)) {}

  // Reads what there is. Errors of `find` and RunFollower::Read, after all that can be read is.
  absl::Status Read();

  void Refresh() override;
  std::string News() override;
  std::string Everything() override;
  HttpReply Answer(const HttpRequest& request) override;

 private:
  const FindRuns find_;
  const std::function<void(absl::string_view)> on_error_;
  Mutex mu_;
  std::vector<std::unique_ptr<RunFollower>> runs_ ABSL_GUARDED_BY(mu_);
  // How many of them News has told of.
  size_t told_ ABSL_GUARDED_BY(mu_) = 0;
  std::set<std::string> errors_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rubato

#endif  // RUBATO_CLI_COMMAND_RUNS_PAGE_H_
