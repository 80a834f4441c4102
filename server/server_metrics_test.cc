#include "server/server_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rubato::server {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ServerMetricsTest, ShowsCountsClocksAndThePlan) {
  v1::ServerProgress progress;
  progress.set_updates_total(12);
  progress.set_wait_seconds_total(1.5);
  progress.set_queue_length(3);
  progress.add_held();
  v1::MemberClock* clock = progress.add_clocks();
  clock->set_worker(1);
  clock->set_clock(7);
  v1::Plan plan;
  plan.set_generation(2);
  plan.set_mode(v1::SSP);
  plan.set_staleness_bound(4);
  plan.add_members();
  MetricText text({});
  AddServerMetrics(progress, plan, &text);
  const std::string page = text.Take();
  EXPECT_THAT(page, HasSubstr("\nrubato_server_updates_total 12\n"));
  EXPECT_THAT(page, HasSubstr("\nrubato_server_wait_seconds_total 1.5\n"));
  EXPECT_THAT(page, HasSubstr("\nrubato_server_queue_length 3\n"));
  EXPECT_THAT(page, HasSubstr("\nrubato_server_held_pulls 1\n"));
  EXPECT_THAT(page, HasSubstr("\nrubato_server_member_clock{worker=\"1\"} 7\n"));
  EXPECT_THAT(page, HasSubstr("\nrubato_plan_generation 2\n"));
  EXPECT_THAT(page, HasSubstr("\nrubato_plan_mode{mode=\"SSP\"} 1\nrubato_plan_mode{mode=\"ASYNC\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("\nrubato_plan_members 1\n"));
  EXPECT_THAT(page, HasSubstr("\nrubato_plan_staleness_bound 4\n"));
}

TEST(ServerMetricsTest, SaysNothingOfAPlanBeforeThereIsOne) {
  MetricText text({});
  AddServerMetrics({}, {}, &text);
  EXPECT_THAT(text.Take(), Not(HasSubstr("rubato_plan")));
}

}  // namespace
}  // namespace rubato::server
