#include "coordinator/rules/checkpoint_round.h"

#include <algorithm>

#include "common/task.h"

namespace rubato::coordinator {

void CheckpointRound::Begin(const std::string& name) {
  name_ = name;
  written_.clear();
  v1::Directive directive;
  directive.mutable_checkpoint()->set_name(name);
  out_->SendToAll(v1::TaskId::SERVER, directive);
}

bool CheckpointRound::OnWritten(uint32_t server) {
  // One without chunks writes a part as well, which nobody needs.
  if (!std::binary_search(job_->servers.begin(), job_->servers.end(), server)) return false;
  return written_.insert(server).second && written_.size() == job_->servers.size();
}

void CheckpointRound::Remind(const v1::TaskId& server) {
  if (name_.empty() || written_.contains(server.index())) return;
  v1::Directive directive;
  directive.mutable_checkpoint()->set_name(name_);
  out_->Send(server, directive);
}

std::vector<std::string> CheckpointRound::Missing() const {
  std::vector<std::string> names;
  if (name_.empty()) return names;
  for (uint32_t server : job_->servers) {
    if (!written_.contains(server)) names.push_back(TaskName(v1::TaskId::SERVER, server));
  }
  return names;
}

}  // namespace rubato::coordinator
