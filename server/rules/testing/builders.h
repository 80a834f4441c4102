#ifndef RUBATO_SERVER_RULES_TESTING_BUILDERS_H_
#define RUBATO_SERVER_RULES_TESTING_BUILDERS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proto/parameter_server.pb.h"
#include "server/rules/sync_reducer.h"

namespace rubato::server {

// Builders for tests of the rules.

inline v1::TaskId Worker(uint32_t index, uint64_t incarnation = 1) {
  v1::TaskId task;
  task.set_role(v1::TaskId::WORKER);
  task.set_index(index);
  task.set_incarnation(incarnation);
  return task;
}

inline v1::Plan MakePlan(uint64_t generation, v1::Mode mode, int64_t first_step, const std::vector<uint32_t>& members,
                         int64_t staleness_bound = 0, uint32_t quorum = 0) {
  v1::Plan plan;
  plan.set_generation(generation);
  plan.set_mode(mode);
  plan.set_staleness_bound(staleness_bound);
  plan.set_quorum(quorum);
  plan.set_first_step(first_step);
  for (uint32_t index : members) *plan.add_members() = Worker(index);
  return plan;
}

// `plan` with a cut, "step<first step>".
inline v1::Plan WithCut(v1::Plan plan, uint64_t id) {
  plan.mutable_cut()->set_id(id);
  plan.mutable_cut()->set_name("step" + std::to_string(plan.first_step()));
  return plan;
}

// The next amendment of `plan`, without the member `lost`.
inline v1::Plan Without(v1::Plan plan, uint32_t lost) {
  auto* members = plan.mutable_members();
  for (int i = members->size() - 1; i >= 0; --i) {
    if (members->Get(i).index() == lost) members->DeleteSubrange(i, 1);
  }
  plan.set_amendment(plan.amendment() + 1);
  return plan;
}

inline PushHeader HeaderOf(const v1::TaskId& worker, uint64_t generation, int64_t step) {
  PushHeader header;
  header.task = worker;
  header.generation = generation;
  header.step = step;
  return header;
}

inline Contribution PushOf(PushHeader header, uint64_t examples = 8) {
  return {.header = std::make_shared<const PushHeader>(std::move(header)), .gradient = nullptr, .examples = examples};
}

inline Contribution PushOf(uint32_t worker, uint64_t generation, int64_t step, uint64_t examples = 8) {
  return PushOf(HeaderOf(Worker(worker), generation, step), examples);
}

}  // namespace rubato::server

#endif  // RUBATO_SERVER_RULES_TESTING_BUILDERS_H_
