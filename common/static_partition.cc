#include "common/static_partition.h"

#include <algorithm>
#include <limits>

#include "absl/numeric/int128.h"

namespace rubato {
namespace {

// Sums and products of two counts fit in 128 bits; positions beyond int64 are of no use to anybody.
int64_t Saturate(absl::int128 value) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  return value > absl::int128(kMax) ? kMax : static_cast<int64_t>(value);
}

// Steps that `examples` examples of one epoch take.
int64_t StepsFor(int64_t examples, int64_t group) { return examples / group + (examples % group != 0 ? 1 : 0); }

}  // namespace

int64_t StaticPosition(int64_t first_example, int64_t first_step, int64_t step, int64_t members, int64_t batch,
                       int64_t train_examples) {
  const int64_t group = Saturate(absl::int128(members) * batch);
  const int64_t left_in_first_epoch = train_examples - first_example % train_examples;
  int64_t steps = step - first_step;
  const int64_t steps_in_first_epoch = StepsFor(left_in_first_epoch, group);
  if (steps < steps_in_first_epoch) return Saturate(absl::int128(first_example) + absl::int128(steps) * group);
  steps -= steps_in_first_epoch;
  const int64_t steps_per_epoch = StepsFor(train_examples, group);
  const absl::int128 epoch = absl::int128(first_example / train_examples) + 1 + steps / steps_per_epoch;
  return Saturate(epoch * train_examples + absl::int128(steps % steps_per_epoch) * group);
}

StaticRange StaticSlice(int64_t first_example, int64_t first_step, int64_t step, int64_t rank, int64_t members,
                        int64_t batch, int64_t train_examples) {
  const int64_t position = StaticPosition(first_example, first_step, step, members, batch, train_examples);
  const int64_t offset = position % train_examples;
  StaticRange range;
  range.epoch = position / train_examples;
  range.begin = std::min(Saturate(absl::int128(offset) + absl::int128(rank) * batch), train_examples);
  range.end = std::min(Saturate(absl::int128(range.begin) + batch), train_examples);
  return range;
}

int64_t StaticEndStep(int64_t first_example, int64_t first_step, int64_t epochs, int64_t members, int64_t batch,
                      int64_t train_examples) {
  const int64_t first_epoch = first_example / train_examples;
  if (first_epoch >= epochs) return first_step;
  const int64_t group = Saturate(absl::int128(members) * batch);
  const int64_t steps_in_first_epoch = StepsFor(train_examples - first_example % train_examples, group);
  const int64_t steps_per_epoch = StepsFor(train_examples, group);
  return Saturate(absl::int128(first_step) + steps_in_first_epoch +
                  absl::int128(epochs - first_epoch - 1) * steps_per_epoch);
}

}  // namespace rubato
