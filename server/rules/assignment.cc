#include "server/rules/assignment.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/task.h"

namespace rubato::server {

void Assignment::Await(const std::vector<uint32_t>& chunks) {
  awaited_ = true;
  lacking_.insert(chunks.begin(), chunks.end());
}

Assignment::Answer Assignment::OnAssign(const v1::TaskId& worker, const std::vector<uint32_t>& chunks) {
  Answer answer = OnAssignState(worker, chunks);
  for (uint32_t chunk : answer.taken) lacking_.erase(chunk);
  return answer;
}

Assignment::Answer Assignment::OnAssignState(const v1::TaskId& worker, const std::vector<uint32_t>& chunks) const {
  if (!awaited_) {
    return {
        v1::ExchangeReply::REFUSED, {}, "assign: the weights begin with what the job's config or a checkpoint says"};
  }
  Answer answer;
  for (uint32_t chunk : chunks) {
    if (lacking_.contains(chunk)) answer.taken.push_back(chunk);
  }
  if (!answer.taken.empty() && !SameTask(worker, named_)) {
    // It may have heard of that earlier than this server.
    const std::string named = named_.incarnation() == 0 ? "nobody yet" : TaskName(named_);
    return {
        v1::ExchangeReply::WAITING, {}, absl::StrCat("initial weights come from ", named, ", as far as known here")};
  }
  return answer;
}

}  // namespace rubato::server
