#include "common/trace/timed_trace.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

constexpr TraceKind kKind = {"c", "n"};

class TimedTraceTest : public testing::Test {
 protected:
  static v1::RecordTrace Request(uint64_t id, double seconds) {
    v1::RecordTrace request;
    request.set_id(id);
    request.set_seconds(seconds);
    return request;
  }
  void Span(const char* subject) {
    trace_.Span(
        kKind,
        {.track = trace_.Track("t"), .subject = trace_.Text(subject), .begin = clock_.Now(), .end = clock_.Now()});
  }
  int Spans(const std::string& path) {
    int spans = 0;
    const nlohmann::json json = nlohmann::json::parse(*ReadFile(path));
    for (const auto& event : json["traceEvents"]) spans += event["ph"] == "X";
    return spans;
  }

  RealClock clock_;
  Logger log_{"test", &clock_};
  TraceRecorder trace_{{.task = "worker 0", .clock = &clock_}};
  const std::string directory_ = testing::TempDir() + "/timed";
  std::unique_ptr<TimedTrace> timed_ =
      std::make_unique<TimedTrace>(TimedTrace::Options{&trace_, &clock_, &log_, directory_, "worker-0.json"});
};

TEST_F(TimedTraceTest, WritesWhatHappensInTheTimeAndSaysWhere) {
  Span("before");
  timed_->Record(Request(5, 0.02));
  Span("in it");
  while (timed_->last().id() == 0) clock_.Sleep(absl::Milliseconds(1));
  EXPECT_EQ(timed_->last().id(), 5u);
  EXPECT_EQ(timed_->last().error(), "");
  EXPECT_EQ(timed_->last().path(), directory_ + "/5/worker-0.json");
  EXPECT_FALSE(trace_.enabled());
  EXPECT_EQ(Spans(timed_->last().path()), 1);
}

TEST_F(TimedTraceTest, ATaskThatEndsWritesWhatThereIs) {
  timed_->Record(Request(6, 600));
  timed_->Record(Request(6, 600));  // Repeated: no matter.
  Span("in it");
  timed_->Finish();
  EXPECT_EQ(timed_->last().id(), 6u);
  EXPECT_EQ(Spans(timed_->last().path()), 1);
}

TEST_F(TimedTraceTest, EachTraceBeginsEmpty) {
  timed_->Record(Request(7, 0.001));
  Span("first");
  while (timed_->last().id() != 7) clock_.Sleep(absl::Milliseconds(1));
  timed_->Record(Request(8, 600));
  Span("second");
  Span("second");
  timed_->Finish();
  EXPECT_EQ(Spans(timed_->last().path()), 2);
}

TEST_F(TimedTraceTest, RefusesWhileAnotherOneIsRecorded) {
  ASSERT_TRUE(trace_.Start());
  timed_->Record(Request(9, 1));
  EXPECT_EQ(timed_->last().id(), 9u);
  EXPECT_EQ(timed_->last().error(), "another trace is being recorded");
  EXPECT_TRUE(trace_.enabled());
}

TEST_F(TimedTraceTest, AFileThatCannotBeWrittenIsAnErrorOfTheTrace) {
  ASSERT_TRUE(WriteFileAtomically(testing::TempDir() + "/taken", "a file").ok());
  TimedTrace timed({&trace_, &clock_, &log_, testing::TempDir() + "/taken", "worker-0.json"});
  timed.Record(Request(10, 600));
  timed.Finish();
  EXPECT_EQ(timed.last().id(), 10u);
  EXPECT_NE(timed.last().error(), "");
}

TEST_F(TimedTraceTest, RefusesATimeThatIsNone) {
  uint64_t id = 7;
  for (const double seconds :
       {0.0, -1.0, 1e9, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    timed_->Record(Request(++id, seconds));
    EXPECT_EQ(timed_->last().id(), id);
    EXPECT_EQ(timed_->last().error(),
              absl::StrCat("record_trace.seconds: value ", seconds, "; allowed: above 0, up to 3600"));
    EXPECT_FALSE(trace_.enabled());
  }
}

}  // namespace
}  // namespace rubato
