#ifndef RUBATO_COMMON_LEARNING_RATE_SCHEDULE_H_
#define RUBATO_COMMON_LEARNING_RATE_SCHEDULE_H_

#include <cstdint>

#include "proto/job_config.pb.h"

namespace rubato {

// The factor on the peak learning rate, 0 to 1, at a point of training: `epoch` passes over the training set, or the
// pushing worker's `step`, whichever is the schedule's unit. An absent kind is a constant. `schedule` is valid
// (common/config); a point before the start counts as the start. Pure.
double ScheduleFactor(const v1::LearningRateSchedule& schedule, double epoch, int64_t step);

// Whether that point is in the warm-up.
bool IsWarmUp(const v1::LearningRateSchedule& schedule, double epoch, int64_t step);

}  // namespace rubato

#endif  // RUBATO_COMMON_LEARNING_RATE_SCHEDULE_H_
