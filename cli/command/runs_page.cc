#include "cli/command/runs_page.h"

#include <algorithm>

namespace rubato {
namespace {

using Json = nlohmann::ordered_json;

std::string Text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

absl::Status RunsPage::Read() {
  MutexLock lock(mu_);
  absl::StatusOr<std::vector<ChosenRun>> chosen = find_();
  absl::Status status = chosen.status();
  for (const ChosenRun& run : chosen.ok() ? *chosen : std::vector<ChosenRun>()) {
    const bool known =
        std::any_of(runs_.begin(), runs_.end(), [&](const auto& other) { return other->directory() == run.directory; });
    if (!known) runs_.push_back(std::make_unique<RunFollower>(run.name, run.directory));
  }
  for (const auto& run : runs_) status.Update(run->Read());
  return status;
}

void RunsPage::Refresh() {
  const absl::Status status = Read();
  if (status.ok()) return;
  bool is_new = false;
  {
    MutexLock lock(mu_);
    is_new = errors_.insert(std::string(status.message())).second;
  }
  if (is_new) on_error_(status.message());
}

std::string RunsPage::News() {
  MutexLock lock(mu_);
  Json runs = Json::array();
  for (size_t i = 0; i < runs_.size(); ++i) {
    Json news = runs_[i]->feed().News();
    // What a run is called comes with its first news.
    runs.push_back(i < told_ ? std::move(news) : runs_[i]->feed().Everything());
  }
  told_ = runs_.size();
  return Text({{"runs", std::move(runs)}});
}

std::string RunsPage::Everything() {
  MutexLock lock(mu_);
  Json runs = Json::array();
  for (size_t i = 0; i < told_; ++i) runs.push_back(runs_[i]->feed().Everything());
  return Text({{"runs", std::move(runs)}});
}

HttpReply RunsPage::Answer(const HttpRequest&) { return {.status = 404, .body = "/ and /events are here\n"}; }

}  // namespace rubato
