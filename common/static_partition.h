#ifndef RUBATO_COMMON_STATIC_PARTITION_H_
#define RUBATO_COMMON_STATIC_PARTITION_H_

#include <cstdint>

namespace rubato {

// The arithmetic of STATIC dispatch. Every task computes the same answer from the plan alone, so that no message is
// needed to know which examples a step takes.
//
// The job's stream is its epochs one after another: position p is example p % train_examples, in the order of epoch
// p / train_examples. Each step takes the next group of members * batch examples of the current epoch. A group never
// crosses the end of an epoch: the last one is cut there, and the next step starts the next epoch.
//
// In all functions: 0 <= first_example is the stream position of step `first_step` (Plan.first_example,
// Plan.first_step), step >= first_step, and members, batch and train_examples are at least 1. Pure functions.

// The part of a step that one member takes. It may be empty (begin == end) in an epoch's last group.
struct StaticRange {
  int64_t epoch = 0;
  // Positions in the epoch's order of examples.
  int64_t begin = 0;
  int64_t end = 0;
};

// The stream position at which `step` begins: the examples that all earlier steps of the job consumed. Stays at
// INT64_MAX when it would be larger.
int64_t StaticPosition(int64_t first_example, int64_t first_step, int64_t step, int64_t members, int64_t batch,
                       int64_t train_examples);

// The examples of `step` for the member that is number `rank` of the plan's members, 0 <= rank < members.
StaticRange StaticSlice(int64_t first_example, int64_t first_step, int64_t step, int64_t rank, int64_t members,
                        int64_t batch, int64_t train_examples);

// The first step that lies wholly after `epochs` epochs of the stream (first_step when they are over by then): the
// steps of a job with that many epochs are those below it. Stays at INT64_MAX when it would be larger.
int64_t StaticEndStep(int64_t first_example, int64_t first_step, int64_t epochs, int64_t members, int64_t batch,
                      int64_t train_examples);

}  // namespace rubato

#endif  // RUBATO_COMMON_STATIC_PARTITION_H_
