#include "cli/report/run_record.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

using ::testing::HasSubstr;

constexpr char kStart[] =
    R"({"kind":"start","t":0,"job":"mnist","mode":"SYNC","staleness_bound":0,"workers":2,"servers":2,"seed":18446744073709551615,"batch_size":64,"train_examples":60000,"epochs":3,"target_accuracy":0.985})"
    "\n";
constexpr char kProgress[] =
    R"({"kind":"progress","t":1.5,"step":120,"epoch":0.25,"examples":15360,"examples_per_second":10240,"loss":0.41,"accuracy":null,"generation":1,"mode":"SYNC","staleness_mean":0.0,"staleness_counts":[240,0],"waiting_share":0.12,"sent_bytes":1,"received_bytes":1,"workers":[{"index":1,"step":120,"examples":7680,"data_seconds":0.01,"compute_seconds":1.2,"push_seconds":0.1,"pull_wait_seconds":0.2}]})"
    "\n";
constexpr char kEnd[] =
    R"({"kind":"end","t":30.0,"ok":true,"error":"","examples":180000,"examples_per_second":6000,"non_finite":0})"
    "\n";

std::string ErrorOf(const std::string& text) {
  return std::string(ParseRunRecord(text, "metrics.jsonl").status().message());
}

TEST(RunRecordTest, ReadsEveryKindOfLine) {
  std::string text =
      std::string(kStart) + kProgress +
      R"({"kind":"evaluation","t":3.1,"step":469,"epoch":1.0,"loss":0.1,"accuracy":0.97,"examples":10000,"final":true})"
      "\n"
      R"({"kind":"plan","t":5.0,"generation":2,"mode":"ASYNC","staleness_bound":0,"first_step":500,"members":[0,1],"reason":"operator","round_trip_seconds":0.003,"stall_seconds":0.04,"slowest_step_seconds":0.05})"
      "\n"
      R"({"kind":"member","t":9.0,"task":"worker 1","event":"evicted","reason":"silent"})"
      "\n" +
      kEnd;
  absl::StatusOr<RunRecord> record = ParseRunRecord(text, "metrics.jsonl");
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->start->seed, 18446744073709551615u);
  ASSERT_EQ(record->progress.size(), 1u);
  EXPECT_EQ(record->progress[0].loss, 0.41);
  EXPECT_FALSE(record->progress[0].accuracy.has_value());
  ASSERT_EQ(record->progress[0].workers.size(), 1u);
  EXPECT_EQ(record->progress[0].workers[0].index, 1);
  EXPECT_DOUBLE_EQ(record->progress[0].workers[0].TotalSeconds(), 1.51);
  ASSERT_EQ(record->evaluations.size(), 1u);
  EXPECT_TRUE(record->evaluations[0].final);
  ASSERT_EQ(record->plans.size(), 1u);
  EXPECT_THAT(record->plans[0].members, ::testing::ElementsAre(0, 1));
  ASSERT_EQ(record->members.size(), 1u);
  EXPECT_EQ(record->members[0].reason, "silent");
  EXPECT_EQ(record->end->examples, 180000);
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

TEST(RunRecordTest, SkipsUnknownKindsAndFields) {
  absl::StatusOr<RunRecord> record =
      ParseRunRecord("{\"kind\":\"weather\",\"t\":1}\n" + std::string(kEnd), "metrics.jsonl");
  ASSERT_TRUE(record.ok()) << record.status();
}

TEST(RunRecordTest, NamesFileAndLineOfAMalformedLine) {
  EXPECT_THAT(ErrorOf(std::string(kStart) + "{\"kind\":\"pro\n" + kEnd),
              HasSubstr("metrics.jsonl:2: not a line of JSON"));
  EXPECT_THAT(ErrorOf("[1]\n"), HasSubstr("metrics.jsonl:1: not a JSON object"));
  EXPECT_THAT(ErrorOf("\n"), HasSubstr("metrics.jsonl:1: "));
}

TEST(RunRecordTest, NamesTheFieldAndWhatIsAllowed) {
  EXPECT_THAT(ErrorOf("{\"kind\":\"end\",\"t\":\"late\",\"ok\":true}\n"),
              HasSubstr("field t: value \"late\"; allowed: a number"));
  EXPECT_THAT(ErrorOf("{\"kind\":\"end\",\"t\":1}\n"), HasSubstr("field ok: missing"));
  EXPECT_THAT(ErrorOf("{\"t\":1}\n"), HasSubstr("field kind: missing"));
  std::string text = kProgress;
  text.replace(text.find("[240,0]"), 7, "[240,\"x\"]");
  EXPECT_THAT(ErrorOf(text), HasSubstr("field staleness_counts"));
  text = kProgress;
  text.replace(text.find("1.2,"), 4, "null,");
  EXPECT_THAT(ErrorOf(text), HasSubstr("workers: field compute_seconds: value null"));
}

TEST(RunRecordTest, RefusesNumbersThatDoNotFit) {
  std::string text = kEnd;
  text.replace(text.find("180000"), 6, "18446744073709551615");
  EXPECT_THAT(ErrorOf(text), HasSubstr("field examples"));
}

TEST(RunRecordTest, SaysThatADirectoryHoldsNoRun) {
  absl::Status status = ReadRunRecord("/nonexistent").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nonexistent/metrics.jsonl"));
}

}  // namespace
}  // namespace rubato
