#ifndef RUBATO_TESTS_EXPLORER_SCOPE_H_
#define RUBATO_TESTS_EXPLORER_SCOPE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "tests/simulation/scenario.h"

namespace rubato::explorer {

// Which job is explored, and what may happen in it besides: each at most once, at any time, in every order with all the
// rest.
struct Scope {
  uint32_t workers = 2;
  uint32_t servers = 1;
  uint32_t partitions = 1;  // Of each server.
  uint32_t chunks = 2;      // Of the model.
  // Of one message between worker and server, as far as they are of one partition.
  uint32_t chunks_per_message = 1;
  int64_t steps = 3;
  // Workers do nothing any more once they have the weights of the step after these, as if the next batch took for ever
  // to read. Otherwise they leave after so many steps each.
  bool stay = false;
  simulation::Rules start;
  // The operator switches to these rules.
  std::optional<simulation::Rules> switch_to;
  // The operator asks for a checkpoint.
  bool cut = false;
  // A worker dies.
  bool crash_worker = false;
  // A worker's streams to a server break: what is in flight is lost, and some of it comes again.
  bool break_stream = false;
  // The network delivers a request or an answer twice.
  bool repeat = false;
  // All requests that a partition holds at a time are answered WAITING, as after their timeout.
  bool timeout = false;
  // The coordinator dies, before any of its actions, and is started again from its journal.
  bool crash_coordinator = false;
  // A server dies and is started again, and the job goes back to its last cut or to its beginning. Only with `stay`: a
  // worker that has left does not come back.
  bool crash_server = false;

  // Whether the coordinator may lose what it was told.
  bool MayForget() const { return crash_coordinator || crash_server; }
};

// "sync", "sync:2" with a quorum, "ssp:1", "async". InvalidArgument names what is allowed.
absl::StatusOr<simulation::Rules> ParseRules(const std::string& text);
// As ParseRules reads them.
std::string NameOf(const simulation::Rules& rules);
// One line for people.
std::string Describe(const Scope& scope);

}  // namespace rubato::explorer

#endif  // RUBATO_TESTS_EXPLORER_SCOPE_H_
