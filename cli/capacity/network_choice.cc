#include "cli/capacity/network_choice.h"

#include <optional>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status.h"

namespace rubato::capacity {
namespace {

struct Choice {
  // "": all tasks.
  std::string role;
  // None: all of the role.
  std::optional<uint32_t> index;
  LinkModel link;

  // Those that say less come first.
  int rank() const { return role.empty() ? 0 : index.has_value() ? 2 : 1; }
};

absl::StatusOr<Choice> ParseChoice(const std::string& value, uint32_t workers, uint32_t servers) {
  const std::string flag = absl::StrCat("--network: value \"", value, "\"");
  const std::vector<std::string> parts = absl::StrSplit(value, absl::MaxSplits(':', 2));
  Choice choice;
  if (parts.size() == 3) {
    choice.role = parts[0];
    const bool known = parts[0] == "worker" || parts[0] == "server";
    if (!known || (parts[1] != "*" && !absl::SimpleAtoi(parts[1], &choice.index.emplace()))) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag,
                       ": not a task and a link; allowed: LINK, worker:INDEX:LINK, worker:*:LINK and the same of "
                       "server, as in server:*:rate=25gbit"));
    }
    const uint32_t tasks = parts[0] == "worker" ? workers : servers;
    if (choice.index.value_or(0) >= tasks) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, ": there are ", tasks, " ", parts[0], "s, counted from 0; allowed: up to ", tasks - 1));
    }
  }
  absl::StatusOr<LinkModel> link = ParseLink(parts.size() == 3 ? parts[2] : value);
  if (!link.ok()) return Annotate(link.status(), flag);
  choice.link = *link;
  return choice;
}

void Apply(const Choice& choice, ClusterLinks* links) {
  const auto set = [&choice](std::vector<LinkModel>& tasks, const LinkModel& link) {
    if (choice.index.has_value()) {
      tasks[*choice.index] = link;
    } else {
      tasks.assign(tasks.size(), link);
    }
  };
  if (choice.role != "server") set(links->workers, choice.link);
  if (choice.role == "worker") return;
  LinkModel link = choice.link;
  // Counted at the workers' ends.
  if (choice.role.empty()) link.latency = absl::ZeroDuration();
  set(links->servers, link);
}

}  // namespace

absl::StatusOr<ClusterLinks> ParseClusterLinks(const std::vector<std::string>& values, uint32_t workers,
                                               uint32_t servers) {
  std::vector<Choice> choices;
  std::set<std::pair<std::string, std::optional<uint32_t>>> given;
  for (const std::string& value : values) {
    RUBATO_ASSIGN_OR_RETURN(Choice choice, ParseChoice(value, workers, servers));
    if (!given.insert({choice.role, choice.index}).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("--network: value \"", value, "\": given twice; allowed: each task, each role, and all once"));
    }
    choices.push_back(std::move(choice));
  }
  ClusterLinks links = {std::vector<LinkModel>(workers), std::vector<LinkModel>(servers)};
  for (int rank = 0; rank <= 2; ++rank) {
    for (const Choice& choice : choices) {
      if (choice.rank() == rank) Apply(choice, &links);
    }
  }
  return links;
}

}  // namespace rubato::capacity
