#include "cli/report/run_record.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kStart[] =
    R"({"start":{"t":0,"job":"mnist","mode":"SYNC","workers":2,"servers":2,"seed":"18446744073709551615","loss":"SOFTMAX_CROSS_ENTROPY"}})"
    "\n";
constexpr char kProgress[] =
    R"({"progress":{"t":1.5,"step":120,"epoch":0.25,"examples":15360,"loss":0.41,"diverged":false,"staleness_counts":[240,0],"workers":[{"index":1,"step":120,"examples":7680,"data_seconds":0.01}]}})"
    "\n";
constexpr char kEnd[] = R"({"end":{"t":30.0,"ok":true,"error":"","examples":180000}})"
                        "\n";

std::string ErrorOf(const std::string& text) {
  return std::string(ParseRunRecord(text, "metrics.jsonl").status().message());
}

TEST(RunRecordTest, SortsEveryKindOfLine) {
  std::string text = std::string(kStart) + kProgress +
                     R"({"evaluation":{"t":3.1,"step":469,"accuracy":0.97,"final":true}})"
                     "\n"
                     R"({"plan":{"t":5.0,"generation":2,"mode":"ASYNC","members":[0,1],"reason":"operator"}})"
                     "\n"
                     R"({"member":{"t":9.0,"task":"worker 1","event":"EVICTED","reason":"silent"}})"
                     "\n" +
                     kEnd;
  absl::StatusOr<RunRecord> record = ParseRunRecord(text, "metrics.jsonl");
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->start->seed(), 18446744073709551615u);
  ASSERT_EQ(record->progress.size(), 1u);
  EXPECT_EQ(record->progress[0].loss(), 0.41);
  EXPECT_FALSE(record->progress[0].has_accuracy());
  EXPECT_THAT(record->progress[0].staleness_counts(), ElementsAre(240, 0));
  ASSERT_EQ(record->progress[0].workers_size(), 1);
  EXPECT_EQ(record->progress[0].workers(0).index(), 1u);
  ASSERT_EQ(record->evaluations.size(), 1u);
  EXPECT_TRUE(record->evaluations[0].final());
  ASSERT_EQ(record->plans.size(), 1u);
  EXPECT_THAT(record->plans[0].members(), ElementsAre(0, 1));
  ASSERT_EQ(record->members.size(), 1u);
  EXPECT_EQ(record->members[0].event(), v1::MemberLine::EVICTED);
  EXPECT_EQ(record->end->examples(), 180000);
}

TEST(RunRecordTest, WhatARollbackUndidIsLeftOut) {
  std::string text = kStart;
  for (const char* line :
       {R"({"progress":{"t":1,"step":100}})", R"({"evaluation":{"t":1.5,"step":120}})",
        R"({"checkpoint":{"t":2,"step":150,"name":"step150","bytes":1000,"seconds":0.5}})",
        R"({"progress":{"t":2,"step":150}})", R"({"progress":{"t":3,"step":200}})",
        R"({"evaluation":{"t":3.5,"step":210}})", R"({"end":{"t":4,"ok":false,"error":"server 1 was lost"}})",
        R"({"rollback":{"t":4,"step":150,"epoch":1.5,"term":2,"reason":"server 1 was lost"}})",
        R"({"progress":{"t":5,"step":180}})",
        // Time was counted from another start.
        R"({"rollback":{"t":0.5,"step":1000,"term":3,"reason":"resumed"}})",
        R"({"progress":{"t":0.75,"step":1100}})"}) {
    text += std::string(line) + "\n";
    const absl::StatusOr<RunRecord> so_far = ParseRunRecord(text, "metrics.jsonl");
    ASSERT_TRUE(so_far.ok()) << so_far.status();
    if (so_far->rollbacks.size() != 1 || so_far->progress.back().step() != 180) continue;
    ASSERT_EQ(so_far->progress.size(), 2u);
    EXPECT_EQ(so_far->progress[0].step(), 100);
    ASSERT_EQ(so_far->evaluations.size(), 1u);
    EXPECT_EQ(so_far->evaluations[0].step(), 120);
    EXPECT_FALSE(so_far->end.has_value());
  }
  const absl::StatusOr<RunRecord> record = ParseRunRecord(text, "metrics.jsonl");
  ASSERT_EQ(record->rollbacks.size(), 2u);
  EXPECT_EQ(record->rollbacks[0].reason(), "server 1 was lost");
  ASSERT_EQ(record->checkpoints.size(), 1u);
  EXPECT_EQ(record->checkpoints[0].name(), "step150");
  ASSERT_EQ(record->progress.size(), 1u);
  EXPECT_EQ(record->progress[0].step(), 1100);
  EXPECT_TRUE(record->evaluations.empty());
}

TEST(RunRecordTest, IgnoresATornLastLine) {
  std::string whole = std::string(kStart) + kProgress;
  for (size_t cut = sizeof(kStart); cut < whole.size() - 2; ++cut) {
    absl::StatusOr<RunRecord> record = ParseRunRecord(whole.substr(0, cut), "metrics.jsonl");
    ASSERT_TRUE(record.ok()) << record.status() << " cut at " << cut;
    EXPECT_TRUE(record->progress.empty());
  }
}

TEST(RunRecordTest, KeepsALastLineThatLacksOnlyItsNewline) {
  std::string text = std::string(kStart) + kEnd;
  text.pop_back();
  absl::StatusOr<RunRecord> record = ParseRunRecord(text, "metrics.jsonl");
  ASSERT_TRUE(record.ok());
  EXPECT_TRUE(record->end.has_value());
}

TEST(RunRecordTest, SkipsUnknownKindsOfLines) {
  absl::StatusOr<RunRecord> record = ParseRunRecord("{\"weather\":{\"t\":1}}\n" + std::string(kEnd), "metrics.jsonl");
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_TRUE(record->end.has_value());
}

TEST(RunRecordTest, NamesFileAndLineOfAMalformedLine) {
  EXPECT_THAT(ErrorOf(std::string(kStart) + "{\"pro\n" + kEnd),
              HasSubstr("metrics.jsonl:2: not a line of the run record: "));
  EXPECT_THAT(ErrorOf("[1]\n"), HasSubstr("metrics.jsonl:1: "));
  EXPECT_THAT(ErrorOf("\n"), HasSubstr("metrics.jsonl:1: "));
  EXPECT_THAT(ErrorOf("{\"end\":{\"t\":\"late\"}}\n"), HasSubstr("end.t"));
}

TEST(RunRecordTest, SaysThatADirectoryHoldsNoRun) {
  absl::Status status = ReadRunRecord("/nonexistent").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nonexistent/metrics.jsonl"));
}

}  // namespace
}  // namespace rubato
