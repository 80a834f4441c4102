#include "common/trace/trace_recorder.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "common/storage/file.h"

namespace rubato {
namespace {

using Json = nlohmann::json;

constexpr TraceKind kPush = {"push", "push", {"step", "outcome"}};
constexpr TraceKind kPlain = {"c", "n"};
constexpr TraceKind kArrow = {"flow", "push"};

class TraceRecorderTest : public testing::Test {
 protected:
  TraceRecorder Make(size_t max_spans = 100) {
    return TraceRecorder({.task = "worker 3", .task_index = 3, .max_spans = max_spans, .clock = &clock_});
  }
  // A span of the next 250 microseconds.
  TraceRecorder::SpanInfo Next(TraceTrack track, TraceText subject = {}) {
    const absl::Time begin = clock_.Now();
    clock_.Advance(absl::Microseconds(250));
    return {.track = track, .subject = subject, .begin = begin, .end = clock_.Now()};
  }
  static std::vector<Json> Events(const Json& trace, const std::string& phase) {
    std::vector<Json> events;
    for (const Json& event : trace.at("traceEvents")) {
      if (event.at("ph") == phase) events.push_back(event);
    }
    return events;
  }

  FakeClock clock_{absl::FromUnixMicros(1'700'000'000'000'001)};
};

TEST_F(TraceRecorderTest, WritesCompleteEventsWithTimesFromItsStart) {
  TraceRecorder trace = Make();
  trace.Start();
  clock_.Advance(absl::Milliseconds(2) + absl::Nanoseconds(500));
  trace.Span(kPush, Next(trace.Track("server 0"), trace.Text("batch 1")), {7, trace.Text("applied")});
  const Json json = Json::parse(trace.ToJson());
  ASSERT_EQ(Events(json, "X").size(), 1u);
  EXPECT_EQ(Events(json, "X")[0], Json({{"name", "push batch 1"},
                                        {"cat", "push"},
                                        {"ph", "X"},
                                        {"ts", 2000.5},
                                        {"dur", 250.0},
                                        {"pid", 3},
                                        {"tid", 1},
                                        {"args", {{"step", 7}, {"outcome", "applied"}}}}));
  EXPECT_EQ(json["otherData"]["epoch_unix_microseconds"], 1'700'000'000'000'001);
  EXPECT_EQ(json["otherData"]["task"], "worker 3");
  EXPECT_EQ(json["otherData"]["dropped_spans"], 0);
}

TEST_F(TraceRecorderTest, NamesProcessAndTracks) {
  TraceRecorder trace = Make();
  trace.Start();
  for (const char* track : {"trainer", "server 0", "trainer", "server 1"}) trace.Span(kPlain, Next(trace.Track(track)));
  const Json json = Json::parse(trace.ToJson());
  std::string process;
  std::map<int, std::string> names;
  for (const Json& event : Events(json, "M")) {
    if (event["name"] == "thread_name") names[event["tid"]] = event["args"]["name"];
    if (event["name"] == "process_name") process = event["args"]["name"];
  }
  EXPECT_EQ(names, (std::map<int, std::string>{{1, "trainer"}, {2, "server 0"}, {3, "server 1"}}));
  EXPECT_EQ(process, "worker 3");
  std::vector<int> tracks;
  for (const Json& event : Events(json, "X")) tracks.push_back(event["tid"]);
  EXPECT_EQ(tracks, (std::vector<int>{1, 2, 1, 3}));
}

TEST_F(TraceRecorderTest, ListsTheTracksOfTheRecordingAlone) {
  TraceRecorder trace = Make();
  const TraceTrack first = trace.Track("first"), second = trace.Track("second");
  EXPECT_EQ(trace.Track("first").number, first.number);
  trace.Start();
  trace.Span(kPlain, Next(first));
  trace.Stop();
  trace.Start();
  trace.Span(kPlain, Next(second));
  std::vector<std::string> tracks;
  for (const Json& event : Events(Json::parse(trace.ToJson()), "M")) {
    if (event["name"] == "thread_name") tracks.push_back(event["args"]["name"]);
  }
  EXPECT_EQ(tracks, std::vector<std::string>{"second"});
}

TEST_F(TraceRecorderTest, WritesTimesBeforeItsStart) {
  TraceRecorder trace = Make();
  trace.Start();
  const absl::Time begin = clock_.Now() - absl::Nanoseconds(1500);
  trace.Span(kPlain, {.track = trace.Track("a"), .begin = begin, .end = clock_.Now()});
  EXPECT_EQ(Events(Json::parse(trace.ToJson()), "X")[0]["ts"], -1.5);
  EXPECT_EQ(Events(Json::parse(trace.ToJson()), "X")[0]["dur"], 1.5);
}

TEST_F(TraceRecorderTest, RecordsOnlyWhileEnabled) {
  TraceRecorder trace = Make();
  trace.Span(kPlain, Next(trace.Track("a"), trace.Text("before")));
  trace.Start();
  trace.Span(kPlain, Next(trace.Track("a"), trace.Text("during")));
  trace.Stop();
  trace.Span(kPlain, Next(trace.Track("a"), trace.Text("after")));
  const std::vector<Json> events = Events(Json::parse(trace.ToJson()), "X");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["name"], "n during");
}

TEST_F(TraceRecorderTest, EachStartBeginsEmptyAndThereIsOneAtATime) {
  TraceRecorder trace = Make();
  ASSERT_TRUE(trace.Start());
  EXPECT_FALSE(trace.Start());
  trace.Span(kPlain, Next(trace.Track("a")));
  trace.Stop();
  EXPECT_EQ(Events(Json::parse(trace.ToJson()), "X").size(), 1u);
  ASSERT_TRUE(trace.Start());
  EXPECT_TRUE(Events(Json::parse(trace.ToJson()), "X").empty());
}

TEST_F(TraceRecorderTest, WritesBothEndsOfAFlow) {
  TraceRecorder trace = Make();
  trace.Start();
  clock_.Advance(absl::Microseconds(10));
  trace.Flow(kArrow, {.track = trace.Track("a"), .id = 0xab, .begins = true, .at = clock_.Now()});
  trace.Flow(kArrow, {.track = trace.Track("b"), .id = 0xab, .at = clock_.Now()});
  const Json json = Json::parse(trace.ToJson());
  EXPECT_EQ(Events(json, "s")[0], Json({{"name", "push"},
                                        {"cat", "flow"},
                                        {"ph", "s"},
                                        {"id", "0x00000000000000ab"},
                                        {"ts", 10.0},
                                        {"pid", 3},
                                        {"tid", 1}}));
  EXPECT_EQ(Events(json, "f")[0]["id"], "0x00000000000000ab");
  EXPECT_EQ(Events(json, "f")[0]["bp"], "e");
  EXPECT_EQ(Events(json, "f")[0]["tid"], 2);
}

TEST_F(TraceRecorderTest, SaysHowFarItsClockIsFromTheCoordinators) {
  std::optional<ClockOffset::Estimate> offset;
  TraceRecorder trace({.task = "server 0", .clock_offset = [&] { return offset; }, .clock = &clock_});
  EXPECT_FALSE(Json::parse(trace.ToJson())["otherData"].contains("clock_offset_microseconds"));
  offset = {absl::Microseconds(-1500), absl::Microseconds(40)};
  EXPECT_EQ(Json::parse(trace.ToJson())["otherData"]["clock_offset_microseconds"], -1500.0);
  EXPECT_EQ(Json::parse(trace.ToJson())["otherData"]["clock_error_microseconds"], 40.0);
}

TEST_F(TraceRecorderTest, CountsWhatIsTooMuch) {
  TraceRecorder trace = Make(2);
  trace.Start();
  for (int i = 0; i < 5; ++i) trace.Span(kPlain, Next(trace.Track("a")));
  const Json json = Json::parse(trace.ToJson());
  EXPECT_EQ(Events(json, "X").size(), 2u);
  EXPECT_EQ(json["otherData"]["dropped_spans"], 3);
}

TEST_F(TraceRecorderTest, IsValidJsonWithoutSpansAndWithAnyName) {
  TraceRecorder trace = Make();
  EXPECT_TRUE(Events(Json::parse(trace.ToJson()), "X").empty());
  trace.Start();
  trace.Span(kPush, Next(trace.Track("a\"\\\n"), trace.Text("\x01 \"b\"")), {7, trace.Text("\xc3")});
  const std::vector<Json> events = Events(Json::parse(trace.ToJson()), "X");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["name"], "push \x01 \"b\"");
  EXPECT_EQ(events[0]["args"]["outcome"], "\xef\xbf\xbd");  // The replacement character.
}

TEST_F(TraceRecorderTest, TakesSpansFromSeveralThreads) {
  TraceRecorder trace = Make(1000);
  trace.Start();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&trace, t] {
      const TraceTrack track = trace.Track("thread " + std::to_string(t));
      for (int i = 0; i < 100; ++i) {
        trace.Span(kPush,
                   {.track = track,
                    .begin = absl::UnixEpoch() + absl::Microseconds(i),
                    .end = absl::UnixEpoch() + absl::Microseconds(i + 1)},
                   {i, 0});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Events(Json::parse(trace.ToJson()), "X").size(), 400u);
}

TEST_F(TraceRecorderTest, WritesAFileOrSaysWhyNot) {
  TraceRecorder trace = Make();
  trace.Start();
  trace.Span(kPlain, Next(trace.Track("a")));
  const std::string path = testing::TempDir() + "/trace.json";
  ASSERT_TRUE(trace.Write(path).ok());
  EXPECT_EQ(*ReadFile(path), trace.ToJson());
  EXPECT_TRUE(absl::IsNotFound(trace.Write(testing::TempDir() + "/nowhere/trace.json")));
}

}  // namespace
}  // namespace rubato
