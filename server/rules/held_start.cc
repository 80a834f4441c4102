#include "server/rules/held_start.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "common/task.h"

namespace rubato::server {

std::string DescribeWait(const std::vector<v1::TaskId>& tasks, bool for_coordinator) {
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(tasks.size(), kMostNamed); ++i) names.push_back(TaskName(tasks[i]));
  if (tasks.size() > kMostNamed) names.emplace_back("others");
  if (for_coordinator || tasks.empty()) names.push_back("the coordinator to commit or abort a plan change");
  return absl::StrJoin(names, ", ");
}

}  // namespace rubato::server
