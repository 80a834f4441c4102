#ifndef RUBATO_TESTS_EXPLORER_EXPLORE_H_
#define RUBATO_TESTS_EXPLORER_EXPLORE_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace rubato::explorer {

// A deterministic system whose only freedom is which event comes next.
class System {
 public:
  struct Choice {
    // Names the event; the same event has the same name in every state in which it can come next.
    uint64_t event = 0;
    // Names what will have happened then: choices with the same name here lead to the same state, in which the same may
    // have another name elsewhere.
    uint64_t leads_to = 0;
  };

  virtual ~System() = default;
  // Back to the initial state.
  virtual void Restart() = 0;
  // Of the state: all that what comes next depends on.
  virtual uint64_t Fingerprint() const = 0;
  // The events that can come next.
  virtual std::vector<Choice> Choices() const = 0;
  // REQUIRES: it can come next.
  virtual void Take(uint64_t event) = 0;
  // What was wrong with anything since Restart; empty when nothing was.
  virtual std::string Violation() const = 0;
  // Nothing can come next: what should still have happened; empty when nothing should.
  virtual std::string Unfinished() const = 0;
};

struct ExploreOptions {
  // Gives up when there are more.
  int64_t max_states = std::numeric_limits<int64_t>::max();
  // Whether to visit a state once, and not once for every order of events that leads to it.
  bool merge = true;
};

struct Exploration {
  int64_t states = 0;
  // Choices of all states.
  int64_t transitions = 0;
  // States in which nothing can come next.
  int64_t ends = 0;
  // Orders of events from the beginning to an end, which were all covered. Too low if the states have a cycle.
  double orders = 0;
  // Events of the longest one.
  int64_t depth = 0;
  // Events that were executed, with those that brought the system back to a state.
  int64_t executed = 0;
  // Whether every state was visited. Not when a violation was found.
  bool complete = false;
  // Empty when there is none, and the events that lead to it.
  std::string violation;
  std::vector<uint64_t> path;
};

// Visits every state of the system, depth first, until something is wrong. A choice whose leads_to is known is not
// executed, and a state that is known is not left again. Not thread-safe with respect to `system`.
Exploration Explore(System* system, const ExploreOptions& options);

}  // namespace rubato::explorer

#endif  // RUBATO_TESTS_EXPLORER_EXPLORE_H_
