#ifndef RUBATO_CLI_COMMAND_COMPARISON_PAGE_H_
#define RUBATO_CLI_COMMAND_COMPARISON_PAGE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cli/command/chosen_runs.h"
#include "cli/command/runs_page.h"
#include "cli/command/served_page.h"
#include "common/clock.h"
#include "common/mutex.h"

namespace rubato {

// The page of a comparison while it makes its runs, which are drawn over each other. Thread-safe.
//
//   RUBATO_ASSIGN_OR_RETURN(auto page, ComparisonPage::Create("127.0.0.1:0", on_error, clock));
//   page->Begin("sync", "runs/slow/sync-seed1");
class ComparisonPage {
 public:
  // Serves it on `listen`, as ServePage does for --page. `on_error` is told of each thing that cannot be read, once.
  // Errors of ServePage.
  static absl::StatusOr<std::unique_ptr<ComparisonPage>> Create(const std::string& listen,
                                                                std::function<void(absl::string_view)> on_error,
                                                                const Clock* clock);
  // Tells those who watch how the runs ended.
  ~ComparisonPage();
  ComparisonPage(const ComparisonPage&) = delete;
  ComparisonPage& operator=(const ComparisonPage&) = delete;

  // A run that is on the page once it has a record. Those of one name are seeds of one mode.
  void Begin(const std::string& name, const std::string& directory);

  // As of ServedPage.
  const std::string& url() const { return served_.url; }

 private:
  explicit ComparisonPage(std::function<void(absl::string_view)> on_error);
  std::vector<ChosenRun> Recorded();

  Mutex mu_;
  std::vector<ChosenRun> begun_ ABSL_GUARDED_BY(mu_);
  RunsPage page_;
  ServedPage served_;  // Last: its threads use what is above.
};

}  // namespace rubato

#endif  // RUBATO_CLI_COMMAND_COMPARISON_PAGE_H_
