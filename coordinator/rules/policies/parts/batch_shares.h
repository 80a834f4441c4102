#ifndef RUBATO_COORDINATOR_RULES_POLICIES_PARTS_BATCH_SHARES_H_
#define RUBATO_COORDINATOR_RULES_POLICIES_PARTS_BATCH_SHARES_H_

#include <cstdint>
#include <vector>

namespace rubato::coordinator {

// Parts of `total` examples in proportion to the workers' rates, each 1 to `largest`, in whole examples (largest
// remainders). REQUIRES: rates over 0, and a total from the number of rates to that many times `largest`. Pure.
std::vector<uint32_t> BatchShares(const std::vector<double>& rates, int64_t total, int64_t largest);

// How long the slowest takes for its examples. REQUIRES: as many rates, over 0. Pure.
double LongestBatch(const std::vector<uint32_t>& examples, const std::vector<double>& rates);

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_POLICIES_PARTS_BATCH_SHARES_H_
