#include "cli/capacity/calibration.h"

#include "cli/capacity/testing/jobs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato::capacity {
namespace {

constexpr SimTime kUs = 1000;

// Requests that took 10, 20 and 30 us for reading, rules and answer; an update 5 us and a nanosecond for each byte
// of each contribution; messages 80 us both ways.
CalibrationRun MakeRun(const std::vector<std::string>& overrides) {
  CalibrationRun run;
  run.directory = "runs/one";
  run.layout = SmallLayout(overrides);
  run.steps.push_back({.forward = {1e-3}, .backward = {2e-3}});
  run.transports.push_back({.bytes = 2 * 65 * 16 * 4, .length = 80 * kUs});
  RecordedServer& server = run.servers.emplace_back();
  for (int i = 0; i < 10; ++i) {
    const SimTime at = i * 1000 * kUs;
    server.requests.push_back({.arrived = at,
                               .begun = at,
                               .taken = at + 10 * kUs,
                               .answered = at + 37 * kUs,
                               .sent = at + 67 * kUs,
                               .others = 7 * kUs,
                               .at_once = true});
    for (const uint32_t chunk : {0u, 1u}) {
      const int64_t contributions = run.workers();
      server.updates.push_back({chunk, contributions, 5 * kUs + run.layout.chunk_bytes[chunk] * contributions});
    }
  }
  return run;
}

TEST(CalibrationTest, FitsWhatTheTracesSay) {
  const std::vector<CalibrationRun> runs = {MakeRun({"cluster.workers=4"}), MakeRun({})};
  const absl::StatusOr<Calibration> calibration = Calibrate(runs, SmallJob({"cluster.workers=100"}));
  ASSERT_TRUE(calibration.ok()) << calibration.status();
  const Costs& costs = calibration->costs;
  EXPECT_EQ(costs.steps.size(), 1u);
  const JobLayout layout = SmallLayout();
  EXPECT_EQ(costs.transport.Of(0, layout.pushed_bytes[0]), 20 * kUs);  // At each of four ends.
  EXPECT_EQ(costs.server.receive.Of(2, layout.pushed_bytes[0]), 10 * kUs);
  EXPECT_EQ(costs.server.rules.Of(2, layout.pushed_bytes[0]), 20 * kUs);
  EXPECT_EQ(costs.server.answer.Of(2, layout.pushed_bytes[0]), 30 * kUs);
  EXPECT_NEAR(costs.server.update.fixed, 5e-6, 1e-10);
  EXPECT_NEAR(costs.server.update.per_contributed_byte, 1e-9, 1e-13);
  EXPECT_NEAR(costs.server.update.per_byte, 0, 1e-13);
  EXPECT_TRUE(calibration->notes.empty());
}

TEST(CalibrationTest, SaysWhatIsAGuess) {
  const absl::StatusOr<Calibration> calibration = Calibrate(
      {MakeRun({})}, SmallJob({"cluster.workers=100", "compression.push.codec=BF16", "optimizer.algorithm=MOMENTUM"}));
  ASSERT_TRUE(calibration.ok()) << calibration.status();
  EXPECT_THAT(calibration->notes,
              testing::UnorderedElementsAre(testing::HasSubstr("another compression"),
                                            testing::HasSubstr("another optimizer"), testing::HasSubstr("is a guess")));
}

TEST(CalibrationTest, RefusesRunsThatTrainSomethingElse) {
  const auto why = [](const std::vector<std::string>& planned) {
    return std::string(Calibrate({MakeRun({})}, SmallJob(planned)).status().message());
  };
  EXPECT_THAT(why({"training.batch_size=16"}), testing::HasSubstr("training.batch_size 8; needed: 16"));
  EXPECT_THAT(why({"consistency.sync_every=4"}), testing::HasSubstr("consistency.sync_every"));
  EXPECT_THAT(why({"model.layers[0].linear.units=32"}), testing::HasSubstr("another model"));
  EXPECT_FALSE(Calibrate({}, SmallJob()).ok());
}

}  // namespace
}  // namespace rubato::capacity
