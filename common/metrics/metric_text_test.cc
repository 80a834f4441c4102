#include "common/metrics/metric_text.h"

#include <gtest/gtest.h>

#include <limits>

#include "common/metrics/buckets.h"

namespace rubato {
namespace {

TEST(MetricTextTest, WritesHelpTypeAndSamples) {
  MetricText text(MetricText::Labels{{"role", "worker"}});
  text.Counter("a_total", "Counts.", 12);
  text.Gauges("b", "Measures.", {{{{"mode", "SYNC"}}, 0.25}, {{{"mode", "ASYNC"}}, -1e300}});
  EXPECT_EQ(text.Take(),
            "# HELP a_total Counts.\n# TYPE a_total counter\na_total{role=\"worker\"} 12\n"
            "# HELP b Measures.\n# TYPE b gauge\nb{role=\"worker\",mode=\"SYNC\"} 0.25\n"
            "b{role=\"worker\",mode=\"ASYNC\"} -1e+300\n");
}

TEST(MetricTextTest, WritesNumbersThatReadBackTheSame) {
  MetricText text({});
  const double largest = 9007199254740993.0;
  text.Gauge("a", "A.", largest);
  text.Gauge("b", "B.", std::numeric_limits<double>::quiet_NaN());
  text.Gauge("c", "C.", -std::numeric_limits<double>::infinity());
  const std::string page = text.Take();
  EXPECT_NE(page.find("\na 9007199254740992\n"), std::string::npos) << page;
  EXPECT_NE(page.find("\nb NaN\n"), std::string::npos) << page;
  EXPECT_NE(page.find("\nc -Inf\n"), std::string::npos) << page;
}

TEST(MetricTextTest, EscapesLabels) {
  MetricText text({});
  text.Gauges("a", "A.", {{{{"name", "x\"\\\ny"}}, 1}});
  EXPECT_NE(text.Take().find("a{name=\"x\\\"\\\\\\ny\"} 1\n"), std::string::npos);
}

TEST(MetricTextTest, HistogramsAreCumulative) {
  const double bounds[] = {0, 1, 2};
  const int64_t counts[] = {3, 0, 2, 4};
  MetricText text({});
  text.Histogram("h", "H.", bounds, counts, 17.5);
  EXPECT_EQ(text.Take(),
            "# HELP h H.\n# TYPE h histogram\nh_bucket{le=\"0\"} 3\nh_bucket{le=\"1\"} 3\nh_bucket{le=\"2\"} 5\n"
            "h_bucket{le=\"+Inf\"} 9\nh_sum 17.5\nh_count 9\n");
  text.Histogram("empty", "E.", bounds, {}, 0);
  EXPECT_NE(text.Take().find("empty_bucket{le=\"2\"} 0\nempty_bucket{le=\"+Inf\"} 0\n"), std::string::npos);
}

TEST(MetricTextTest, AFamilyWithoutSamplesIsLeftOut) {
  MetricText text({});
  text.Gauges("a", "A.", {});
  EXPECT_EQ(text.Take(), "");
}

TEST(BucketsTest, AValueOnABoundIsUnderIt) {
  EXPECT_EQ(BucketOf(kStepSecondsBounds, 0), 0u);
  EXPECT_EQ(BucketOf(kStepSecondsBounds, 0.001), 1u);
  EXPECT_EQ(BucketOf(kStepSecondsBounds, 0.0011), 2u);
  EXPECT_EQ(BucketOf(kStepSecondsBounds, 61), kStepSecondsBounds.size());
}

}  // namespace
}  // namespace rubato
