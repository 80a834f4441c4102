#include "cli/command/comparison_page.h"

#include <utility>

#include "absl/memory/memory.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {

absl::StatusOr<std::unique_ptr<ComparisonPage>> ComparisonPage::Create(const std::string& listen,
                                                                       std::function<void(absl::string_view)> on_error,
                                                                       const Clock* clock) {
  auto page = absl::WrapUnique(new ComparisonPage(std::move(on_error)));
  RUBATO_ASSIGN_OR_RETURN(page->served_, ServePage("--page", listen, &page->page_, clock));
  return page;
}

ComparisonPage::ComparisonPage(std::function<void(absl::string_view)> on_error)
    : page_([this] { return Recorded(); }, std::move(on_error)) {}

ComparisonPage::~ComparisonPage() {
  if (served_.server != nullptr) served_.server->Flush();
}

void ComparisonPage::Begin(const std::string& name, const std::string& directory) {
  MutexLock lock(mu_);
  begun_.push_back({name, directory});
}

std::vector<ChosenRun> ComparisonPage::Recorded() {
  MutexLock lock(mu_);
  std::vector<ChosenRun> runs;
  for (const ChosenRun& run : begun_) {
    if (FileExists(JoinPath(run.directory, "metrics.jsonl"))) runs.push_back(run);
  }
  return runs;
}

}  // namespace rubato
