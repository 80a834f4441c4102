#ifndef RUBATO_TESTS_SIMULATION_VERDICT_H_
#define RUBATO_TESTS_SIMULATION_VERDICT_H_

#include <string>

namespace rubato::simulation {

// The first thing that was found wrong in a run. Not thread-safe.
class Verdict {
 public:
  // `what` begins with the invariant. Empty: nothing is wrong.
  void Note(const std::string& what) {
    if (violation_.empty()) violation_ = what;
  }
  // Empty when there is none.
  const std::string& violation() const { return violation_; }

 private:
  std::string violation_;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_VERDICT_H_
