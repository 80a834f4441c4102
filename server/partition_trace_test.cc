#include "server/partition_trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/trace/flow_id.h"
#include "server/rules/testing/builders.h"

namespace rubato::server {
namespace {

using Json = nlohmann::json;

class PartitionTraceTest : public testing::Test {
 protected:
  PartitionTraceTest() {
    model_.tensors.push_back({.name = "first.weight", .shape = {8}});
    for (int64_t offset : {0, 4}) {
      v1::ChunkPlacement* chunk = job_.add_chunks();
      chunk->set_offset(offset);
      chunk->set_length(4);
    }
  }
  static PartitionRequest Push(uint32_t worker, int64_t step) {
    PartitionRequest request;
    request.kind = PartitionRequest::Kind::kPushPull;
    request.task = Worker(worker);
    request.step = step;
    request.chunks = {1};
    return request;
  }
  static ChunkRules::Update Update(int workers, int64_t step) {
    ChunkRules::Update update;
    update.chunk = 1;
    for (int worker = 0; worker < workers; ++worker) {
      update.contributions.push_back(PushOf(static_cast<uint32_t>(worker), 1, step));
    }
    return update;
  }
  absl::Time Later(int microseconds) {
    clock_.Advance(absl::Microseconds(microseconds));
    return clock_.Now();
  }
  Json Events() { return Json::parse(recorder_.ToJson())["traceEvents"]; }
  // "<name> <begin>+<duration>" of all spans of a category.
  std::vector<std::string> Spans(const std::string& category) {
    std::vector<std::string> spans;
    for (const Json& event : Events()) {
      if (event["ph"] != "X" || event["cat"] != category) continue;
      spans.push_back(absl::StrCat(event["name"].get<std::string>(), " ", event["ts"].get<double>(), "+",
                                   event["dur"].get<double>()));
    }
    return spans;
  }

  FakeClock clock_;
  TraceRecorder recorder_{{.task = "server 0", .clock = &clock_}};
  ModelSpec model_;
  v1::JobDescription job_;
  PartitionTrace trace_{&recorder_, &clock_, 0, &model_, &job_};
};

TEST_F(PartitionTraceTest, ShowsAPushFromItsArrivalToItsAnswer) {
  recorder_.Start();
  const absl::Time arrived = trace_.Now();
  const absl::Time begun = Later(10);
  clock_.Advance(absl::Microseconds(5));
  const PartitionTrace::Request request = trace_.Received(Push(1, 7), arrived, begun);
  const absl::Time applied = Later(20);
  clock_.Advance(absl::Microseconds(30));
  trace_.Applied(Update(2, 7), applied);
  const absl::Time answered = Later(2);
  clock_.Advance(absl::Microseconds(1));
  trace_.Answered(request, v1::ExchangeReply::OK, answered);
  EXPECT_EQ(Spans("queue"), std::vector<std::string>{"queue 0+10"});
  EXPECT_EQ(Spans("receive"), std::vector<std::string>{"receive first.weight+4 10+5"});
  EXPECT_EQ(Spans("reduce"), std::vector<std::string>{"reduce and apply first.weight+4 35+30"});
  EXPECT_EQ(Spans("barrier"), std::vector<std::string>{"wait 15+52"});
  EXPECT_EQ(Spans("answer"), std::vector<std::string>{"answer first.weight+4 67+1"});
}

TEST_F(PartitionTraceTest, AnArrowOfEachContributionEndsAtTheUpdate) {
  recorder_.Start();
  trace_.Applied(Update(2, 7), trace_.Now());
  std::vector<std::string> ids;
  for (const Json& event : Events()) {
    if (event["ph"] == "f") ids.push_back(event["id"]);
  }
  EXPECT_EQ(ids,
            (std::vector<std::string>{absl::StrCat("0x", absl::Hex(PushFlowId(Worker(0), 7, 1), absl::kZeroPad16)),
                                      absl::StrCat("0x", absl::Hex(PushFlowId(Worker(1), 7, 1), absl::kZeroPad16))}));
}

TEST_F(PartitionTraceTest, WhatBeganBeforeTheTraceLeavesNothing) {
  const PartitionTrace::Request request = trace_.Received(Push(1, 7), trace_.Now(), trace_.Now());
  recorder_.Start();
  trace_.Applied(Update(1, 7), absl::InfinitePast());
  trace_.Answered(request, v1::ExchangeReply::OK, trace_.Now());
  for (const Json& event : Events()) EXPECT_EQ(event["ph"], "M");
}

TEST_F(PartitionTraceTest, DoesNothingWithoutARecorder) {
  PartitionTrace none(nullptr, &clock_, 0, &model_, &job_);
  EXPECT_EQ(none.Now(), absl::InfinitePast());
  none.Answered(none.Received(Push(0, 1), none.Now(), none.Now()), v1::ExchangeReply::OK, none.Now());
  none.Applied(Update(1, 1), none.Now());
}

}  // namespace
}  // namespace rubato::server
