#ifndef RUBATO_TESTS_SIMULATION_INCARNATIONS_H_
#define RUBATO_TESTS_SIMULATION_INCARNATIONS_H_

#include <cstdint>

#include "proto/parameter_server.pb.h"

namespace rubato::simulation {

// Names processes, each by an incarnation of its own. Not thread-safe.
class Incarnations {
 public:
  v1::TaskId New(v1::TaskId::Role role, uint32_t index) {
    v1::TaskId task;
    task.set_role(role);
    task.set_index(index);
    task.set_incarnation(++last_);
    return task;
  }

 private:
  uint64_t last_ = 0;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_INCARNATIONS_H_
