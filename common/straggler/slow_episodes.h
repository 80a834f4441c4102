#ifndef RUBATO_COMMON_STRAGGLER_SLOW_EPISODES_H_
#define RUBATO_COMMON_STRAGGLER_SLOW_EPISODES_H_

#include <cstdint>

#include "common/straggler/straggler_model.h"

namespace rubato {

// In which steps a worker is in a slow episode. The n-th episode depends on seed, worker and n alone; so which steps
// are slow does not depend on what was asked before. Remembers the last answer, so that a step is cheap after an
// earlier one; a step back begins again with the first episode. Not thread-safe.
class SlowEpisodes {
 public:
  SlowEpisodes(const StragglerModel::Markov& model, uint64_t seed, uint32_t worker);

  // step >= 0.
  bool Contain(int64_t step);

 private:
  // That episode, which follows one that ended before step `from`.
  void Take(uint64_t number, int64_t from);

  const StragglerModel::Markov model_;
  const uint64_t seed_;
  const uint32_t worker_;
  // The episode at hand, its steps [begin_, end_), and the first step after the one before it.
  uint64_t number_ = 0;
  int64_t from_ = 0;
  int64_t begin_ = 0;
  int64_t end_ = 0;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_STRAGGLER_SLOW_EPISODES_H_
