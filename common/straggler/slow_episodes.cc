#include "common/straggler/slow_episodes.h"

#include "common/random.h"
#include "common/straggler/draws.h"

namespace rubato {

SlowEpisodes::SlowEpisodes(const StragglerModel::Markov& model, uint64_t seed, uint32_t worker)
    : model_(model), seed_(seed), worker_(worker) {
  Take(0, 0);
}

bool SlowEpisodes::Contain(int64_t step) {
  if (step < from_) Take(0, 0);
  while (step >= end_) Take(number_ + 1, end_);
  return step >= begin_;
}

void SlowEpisodes::Take(uint64_t number, int64_t from) {
  Random random(seed_, StreamId("straggler markov", worker_, number));
  number_ = number;
  from_ = from;
  begin_ = from + DrawFailures(model_.probability, &random);
  end_ = begin_ + DrawLogUniform(model_.shortest, model_.longest, &random);
}

}  // namespace rubato
