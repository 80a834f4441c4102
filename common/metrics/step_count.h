#ifndef RUBATO_COMMON_METRICS_STEP_COUNT_H_
#define RUBATO_COMMON_METRICS_STEP_COUNT_H_

#include <cstdint>

#include "proto/coordinator.pb.h"

namespace rubato {

// How many of a worker's latest steps WorkerProgress.work_seconds and work_examples have.
inline constexpr int kRecentSteps = 32;

// Counts a step of so many examples that is over: it took `seconds`, `waited` of them for weights. Pure.
void CountStep(double seconds, double waited, int64_t examples, v1::WorkerProgress* progress);

// Examples per second of the latest steps' work. 0 before the first. Pure.
double WorkRate(const v1::WorkerProgress& progress);

// The least of the latest steps' work within which `part` of them are, over 0, up to 1: 0.5 is the median. 0 before the
// first step. Pure.
double WorkQuantile(const v1::WorkerProgress& progress, double part);

}  // namespace rubato

#endif  // RUBATO_COMMON_METRICS_STEP_COUNT_H_
