#include "server/rules/by_worker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace rubato::server {
namespace {

TEST(ByWorkerTest, FindsWhatALinearSearchFindsWhoeverIsMissing) {
  const auto index_of = [](uint32_t worker) { return worker; };
  // Every set of workers 0 to 7.
  for (uint32_t set = 0; set < 256; ++set) {
    std::vector<uint32_t> workers;
    for (uint32_t worker = 0; worker < 8; ++worker) {
      if ((set >> worker & 1) != 0) workers.push_back(worker);
    }
    for (uint32_t worker : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 4000000000u}) {
      const auto found = std::find(workers.begin(), workers.end(), worker);
      EXPECT_EQ(FindByWorker(workers, worker, index_of), static_cast<size_t>(found - workers.begin()));
    }
  }
}

}  // namespace
}  // namespace rubato::server
