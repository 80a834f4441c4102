#include "cli/capacity/service_queue.h"

#include <cmath>

#include "common/random.h"
#include "gtest/gtest.h"

namespace rubato::capacity {
namespace {

TEST(ServiceQueueTest, ServesOneAfterAnother) {
  ServiceQueue queue(1);
  EXPECT_EQ(queue.Serve(0, 10).end, 10);
  const auto second = queue.Serve(3, 5);
  EXPECT_EQ(second.begin, 10);
  EXPECT_EQ(second.end, 15);
  EXPECT_EQ(queue.Serve(100, 1).begin, 100);
  EXPECT_EQ(queue.busy(), 16);
}

TEST(ServiceQueueTest, ServesAsManyAtATimeAsItHasPlaces) {
  ServiceQueue queue(2);
  EXPECT_EQ(queue.Serve(0, 10).end, 10);
  EXPECT_EQ(queue.Serve(0, 4).end, 4);
  EXPECT_EQ(queue.Serve(0, 1).begin, 4);
  EXPECT_EQ(queue.Serve(0, 1).begin, 5);
}

TEST(ServiceQueueTest, WithoutALimitNobodyWaits) {
  ServiceQueue queue(ServiceQueue::kUnlimited);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(queue.Serve(7, 10).begin, 7);
  EXPECT_EQ(queue.busy(), 1000);
}

// Poisson arrivals, one server, constant service: the mean wait is r s / (2 (1 - r)) (Pollaczek and Khinchine).
TEST(ServiceQueueTest, MeanWaitIsThatOfAnMD1Queue) {
  for (const double load : {0.3, 0.5, 0.8}) {
    constexpr SimTime kService = 1'000'000;
    constexpr int kArrivals = 400'000;
    ServiceQueue queue(1);
    Random random(1, StreamId("md1"));
    double now = 0, waited = 0;
    for (int i = 0; i < kArrivals; ++i) {
      now += -std::log(1 - random.Uniform()) * static_cast<double>(kService) / load;
      const auto at = static_cast<SimTime>(now);
      waited += static_cast<double>(queue.Serve(at, kService).begin - at);
    }
    const double expected = load / (2 * (1 - load)) * static_cast<double>(kService);
    EXPECT_NEAR(waited / kArrivals, expected, 0.05 * expected) << "load " << load;
  }
}

}  // namespace
}  // namespace rubato::capacity
