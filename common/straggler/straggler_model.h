#ifndef RUBATO_COMMON_STRAGGLER_STRAGGLER_MODEL_H_
#define RUBATO_COMMON_STRAGGLER_STRAGGLER_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace rubato {

// How a worker is slowed down on purpose, to see what stragglers do to a job: terms, each there or not. A step takes
// (its computing + all times that are added) * the product of all factors. Times are 0 to 10 minutes, factors 1 to
// 1000, probabilities 0.000001 to 1. Made into times by a Straggler (straggler.h).
struct StragglerModel {
  // Scale * U^(-1/shape) with U uniform in (0, 1], and no more than 1000 * scale. The shape is 0.1 to 100.
  struct Pareto {
    absl::Duration scale;
    double shape = 0;
  };
  // A gamma distribution; the variation is its standard deviation divided by its mean, 0.001 to 10.
  struct Gamma {
    absl::Duration mean;
    double variation = 0;
  };
  struct Bimodal {
    double factor = 1;
    double probability = 0;
  };
  // Slow episodes: each step that is in none begins one with that probability. Its length in steps, 1 to 1,000,000, is
  // log-uniform between the two.
  struct Markov {
    double factor = 1;
    double probability = 0;
    int64_t shortest = 0;
    int64_t longest = 0;
  };
  // Of the worker's index: i + 1, or the square root of that.
  enum class Rank { kLinear, kSquareRoot };
  struct Trace {
    std::string path;
    // One a line, in seconds; not there until it is read (straggler_trace.h).
    std::shared_ptr<const std::vector<double>> seconds;
  };

  // "x3": a factor.
  std::optional<double> factor;
  // "sleep=30ms": added to each step.
  std::optional<absl::Duration> sleep;
  // "exp=10ms": added, exponentially distributed with that mean.
  std::optional<absl::Duration> exponential_mean;
  // "pareto=10ms,1.5": added.
  std::optional<Pareto> pareto;
  // "gamma=30ms,0.1": added.
  std::optional<Gamma> gamma;
  // "spread=0.6": a factor, drawn once for each worker from the gamma distribution of mean 1 and that variation. It may
  // be under 1.
  std::optional<double> spread;
  // "bimodal=x6,0.125": a factor of some steps.
  std::optional<Bimodal> bimodal;
  // "markov=x4,0.02,10,200": a factor of the steps in slow episodes.
  std::optional<Markov> markov;
  // "rank" or "rank=sqrt": a factor.
  std::optional<Rank> rank;
  // "trace=FILE": added to step k what is in line (k + worker * lines / workers) modulo lines, so that workers are at
  // places of the file as far apart as they can be. The last term: all that follows is the file's name.
  std::optional<Trace> trace;
};

// Reads terms that are joined by '+', each kind at most once: "x3+sleep=30ms". A trace's file is not read.
// InvalidArgument: names the term, and what is allowed.
absl::StatusOr<StragglerModel> ParseStraggler(absl::string_view text);

// The same as text that ParseStraggler reads, in the order above. Empty if nothing is slowed down: "x1".
std::string FormatStraggler(const StragglerModel& model);

}  // namespace rubato

#endif  // RUBATO_COMMON_STRAGGLER_STRAGGLER_MODEL_H_
