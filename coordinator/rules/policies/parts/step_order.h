#ifndef RUBATO_COORDINATOR_RULES_POLICIES_PARTS_STEP_ORDER_H_
#define RUBATO_COORDINATOR_RULES_POLICIES_PARTS_STEP_ORDER_H_

#include <cstddef>
#include <vector>

namespace rubato::coordinator {

// Fewer steps of a worker than this say too little.
inline constexpr size_t kStepsToJudge = 8;

// From durations of each worker's latest steps: how long it takes in the mean until k of the workers have done a step
// that all begin together. Element k - 1 of the result is that of k; it does not fall. Empty when there is no worker,
// or one of them has fewer than kStepsToJudge. Pure.
//
// The j-th latest steps of all workers count as one step of the job, which is right for the order statistics of
// workers whose steps do not depend on each other.
std::vector<double> MeanStepOrder(const std::vector<std::vector<double>>& seconds);

// The mean of each worker's durations; empty when MeanStepOrder is.
std::vector<double> MeanSteps(const std::vector<std::vector<double>>& seconds);

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_POLICIES_PARTS_STEP_ORDER_H_
