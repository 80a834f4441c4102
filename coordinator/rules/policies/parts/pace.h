#ifndef RUBATO_COORDINATOR_RULES_POLICIES_PARTS_PACE_H_
#define RUBATO_COORDINATOR_RULES_POLICIES_PARTS_PACE_H_

#include <cstdint>

#include "proto/job_config.pb.h"

namespace rubato::coordinator {

// When a policy that measures judges, and when it may act on that: once a window, after several judgements in a row
// that agree, not soon after a change, and a few times in a job. Pure; not thread-safe.
//
//   if (!pace.WindowEnds(job.step, job.seconds, job.plan.generation())) return std::nullopt;
//   if (!pace.Confirms(/*direction=*/-1)) return std::nullopt;
//   ... the change is made ...
class Pace {
 public:
  // With its defaults filled in.
  explicit Pace(const v1::PolicyPace& options) : options_(options) {}

  // Whether a window ends here. A new one begins with it, and with every plan.
  bool WindowEnds(int64_t step, double seconds, uint64_t generation);
  // A window's judgement: into which direction the policy would change what it decides on, as any number but 0; 0: it
  // would not. `gain`: by what part that would speed training up. If it is kClearGain or more, one window is enough:
  // to wait for others would cost more than a change that was for nothing. Whether to do it now, which counts as done.
  bool Confirms(int direction, double gain = 0);

  static constexpr double kClearGain = 0.75;

  // How many changes were made: what must outlive the process.
  uint32_t changes() const { return changes_; }
  // As after so many changes, the last one made just now.
  void Restore(uint32_t changes);

 private:
  const v1::PolicyPace options_;
  bool begun_ = false;
  uint64_t generation_ = 0;
  int64_t begin_step_ = 0;
  double begin_seconds_ = 0;
  int direction_ = 0;
  uint32_t agreeing_ = 0;
  uint32_t rest_ = 0;
  uint32_t changes_ = 0;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_POLICIES_PARTS_PACE_H_
