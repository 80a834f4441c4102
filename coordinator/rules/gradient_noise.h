#ifndef RUBATO_COORDINATOR_RULES_GRADIENT_NOISE_H_
#define RUBATO_COORDINATOR_RULES_GRADIENT_NOISE_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "proto/coordinator.pb.h"

namespace rubato::coordinator {

// Adds up what the servers' heartbeats say of gradients. Pure; not thread-safe.
class GradientNoise {
 public:
  // Sums since this coordinator began, over the whole model and the steps that were measured.
  struct Sums {
    double steps = 0;
    // Squares of the norms of the gradients that were applied; as in v1::GradientMoments.
    double mean_square = 0;
    double signal = 0;
    double variance = 0;
    double spread = 0;
    double lasting_spread = 0;
  };

  // Of a model of so many chunks.
  explicit GradientNoise(size_t chunks) : chunks_(static_cast<double>(chunks)) {}

  // The sums of a server's process since it began. Lower ones were overtaken and change nothing.
  void OnHeartbeat(const v1::TaskId& server, const v1::GradientMoments& moments);

  const Sums& sums() const { return sums_; }
  // Over about the last kSteps measured steps.
  v1::GradientNoise Recent() const;

 private:
  // Sums of which older steps count ever less.
  static constexpr double kSteps = 50;
  static constexpr double kFirstSteps = 10;

  struct Server {
    uint64_t incarnation = 0;
    v1::GradientMoments moments;
  };

  double chunks_;
  // By index: the last heartbeat.
  std::map<uint32_t, Server> servers_;
  Sums sums_;
  Sums recent_;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_GRADIENT_NOISE_H_
