#include "common/straggler/straggler_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace rubato {
namespace {

using ::testing::HasSubstr;

std::string Formatted(absl::string_view text) {
  const absl::StatusOr<StragglerModel> model = ParseStraggler(text);
  return model.ok() ? FormatStraggler(*model) : std::string(model.status().message());
}

TEST(StragglerModelTest, ReadsEachKindOfTerm) {
  const absl::StatusOr<StragglerModel> model = ParseStraggler(
      "x3+sleep=30ms+exp=10ms+pareto=11ms,1.5+gamma=1m30s,0.1+spread=0.6+bimodal=x6,0.125+markov=x4,0.02,10,200+"
      "rank=sqrt+trace=times+x2.txt");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->factor, 3);
  EXPECT_EQ(model->sleep, absl::Milliseconds(30));
  EXPECT_EQ(model->exponential_mean, absl::Milliseconds(10));
  EXPECT_EQ(model->pareto->scale, absl::Milliseconds(11));
  EXPECT_EQ(model->pareto->shape, 1.5);
  EXPECT_EQ(model->gamma->mean, absl::Seconds(90));
  EXPECT_EQ(model->gamma->variation, 0.1);
  EXPECT_EQ(model->spread, 0.6);
  EXPECT_EQ(model->bimodal->factor, 6);
  EXPECT_EQ(model->bimodal->probability, 0.125);
  EXPECT_EQ(model->markov->factor, 4);
  EXPECT_EQ(model->markov->probability, 0.02);
  EXPECT_EQ(model->markov->shortest, 10);
  EXPECT_EQ(model->markov->longest, 200);
  EXPECT_EQ(model->rank, StragglerModel::Rank::kSquareRoot);
  EXPECT_EQ(model->trace->path, "times+x2.txt");
  EXPECT_EQ(model->trace->seconds, nullptr);
}

TEST(StragglerModelTest, FormatsWhatItReads) {
  for (const char* text :
       {"x3", "x1000", "x1.0000001", "sleep=30ms", "sleep=10m", "sleep=0", "exp=1.5us",
        "pareto=10ms,1.5+gamma=30ms,0.1+spread=0.001", "bimodal=x6,0.125", "bimodal=x1,0.000001",
        "markov=x4,0.02,10,200", "markov=x4,1,1,1000000", "rank", "rank=sqrt", "trace=a b,c+x3", "x3+rank+trace=/t"}) {
    EXPECT_EQ(Formatted(text), text);
  }
}

TEST(StragglerModelTest, FormatsInOneOrder) {
  EXPECT_EQ(Formatted("bimodal=x6.50,.125+sleep=0.030s+x03"), "x3+sleep=30ms+bimodal=x6.5,0.125");
}

TEST(StragglerModelTest, FormatsNothingWhereNothingIsSlower) {
  EXPECT_EQ(Formatted("x1"), "");
  EXPECT_EQ(Formatted("x1+sleep=1ms"), "sleep=1ms");
}

TEST(StragglerModelTest, SaysWhatATermMayBe) {
  EXPECT_EQ(Formatted("x3+sleep=-1ms"),
            "term \"sleep=-1ms\"; allowed: sleep=TIME, a time of 0 to 10m, as in sleep=30ms");
  EXPECT_EQ(Formatted("x0.5"), "term \"x0.5\"; allowed: x1 to x1000, as in x3");
  EXPECT_EQ(Formatted("nap=3ms"),
            "term \"nap=3ms\"; allowed: xFACTOR, sleep, exp, pareto, gamma, spread, bimodal, markov, rank, trace");
  EXPECT_EQ(Formatted("sleep=1ms+x2+sleep=2ms"), "term \"sleep=2ms\"; allowed: each kind of term once");
  EXPECT_EQ(Formatted("trace="), "term \"trace=\"; allowed: trace=FILE, a number of seconds in each line");
}

TEST(StragglerModelTest, RefusesWhatIsNoModel) {
  for (const char* text : {"",
                           "+",
                           "x3+",
                           "+x3",
                           "3",
                           "x",
                           "xnan",
                           "xinf",
                           "x-1",
                           "x1001",
                           "x3,4",
                           "x3=4",
                           "X3",
                           "x2+x3",
                           "sleep",
                           "sleep=",
                           "sleep=30",
                           "sleep=inf",
                           "sleep=-inf",
                           "sleep=11m",
                           "sleep=1ms,1ms",
                           "exp=-1ms",
                           "exp=10ms,1",
                           "pareto=10ms",
                           "pareto=10ms,0",
                           "pareto=10ms,nan",
                           "pareto=10ms,101",
                           "pareto=-1s,1.5",
                           "gamma=10ms",
                           "gamma=10ms,0",
                           "gamma=10ms,-1",
                           "gamma=10ms,inf",
                           "spread",
                           "spread=0",
                           "spread=11",
                           "spread=nan",
                           "bimodal=6,0.5",
                           "bimodal=x6",
                           "bimodal=x6,0",
                           "bimodal=x6,1.01",
                           "bimodal=x0.1,0.5",
                           "bimodal=x6,nan",
                           "markov=x4,0.02,10",
                           "markov=x4,0.02,0,10",
                           "markov=x4,0.02,11,10",
                           "markov=x4,0.02,10,1000001",
                           "markov=x4,0.02,1.5,10",
                           "markov=x4,2,10,20",
                           "rank=",
                           "rank=cube",
                           "rank,sqrt",
                           "trace"}) {
    const absl::Status status = ParseStraggler(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("; allowed: ")) << text;
  }
}

}  // namespace
}  // namespace rubato
