#include "common/storage/run_record_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace rubato {
namespace {

using testing::HasSubstr;

std::string ErrorOf(const std::string& text) { return std::string(ParseRunRecordJson(text).status().message()); }

v1::RunRecordLine Progress() {
  v1::RunRecordLine line;
  line.mutable_progress()->set_examples(123456789012);
  line.mutable_progress()->set_loss(0.5);
  line.mutable_progress()->set_mode(v1::ASYNC);
  line.mutable_progress()->add_staleness_counts(240);
  line.mutable_progress()->add_workers()->set_index(0);
  return line;
}

TEST(RunRecordJsonTest, CountsAreNumbersAndFieldsAreThereAtZero) {
  const std::string text = RunRecordJson(Progress());
  EXPECT_THAT(text, HasSubstr("\"examples\":123456789012,"));
  const nlohmann::json json = nlohmann::json::parse(text)["progress"];
  EXPECT_EQ(json["t"], 0);
  EXPECT_EQ(json["loss"], 0.5);
  EXPECT_EQ(json["diverged"], false);
  EXPECT_EQ(json["mode"], "ASYNC");
  EXPECT_EQ(json["waiting_share"], 0);
  EXPECT_EQ(json["workers"][0]["index"], 0);
  EXPECT_FALSE(json.contains("accuracy"));
  EXPECT_FALSE(json["workers"][0].contains("loss_scale"));
}

TEST(RunRecordJsonTest, EveryKindOfLineComesBackAsItWas) {
  const auto* fields = v1::RunRecordLine::descriptor()->oneof_decl(0);
  for (int i = 0; i < fields->field_count(); ++i) {
    v1::RunRecordLine line;
    line.GetReflection()->MutableMessage(&line, fields->field(i));
    const absl::StatusOr<v1::RunRecordLine> read = ParseRunRecordJson(RunRecordJson(line));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->line_case(), line.line_case());
  }
  EXPECT_EQ(ParseRunRecordJson(RunRecordJson(Progress()))->SerializeAsString(), Progress().SerializeAsString());
}

TEST(RunRecordJsonTest, TheWholeRangeOfSeedsIsKept) {
  v1::RunRecordLine line;
  line.mutable_start()->set_seed(18446744073709551615u);
  EXPECT_THAT(RunRecordJson(line), HasSubstr("\"seed\":\"18446744073709551615\""));
  EXPECT_EQ(ParseRunRecordJson(RunRecordJson(line))->start().seed(), 18446744073709551615u);
}

TEST(RunRecordJsonTest, AReasonWithOddBytesIsStillJson) {
  v1::RunRecordLine line;
  line.mutable_member()->set_reason("say \"no\" \xff\n");
  EXPECT_EQ(nlohmann::json::parse(RunRecordJson(line))["member"]["reason"], "say \"no\" \n");
}

TEST(RunRecordJsonTest, WhatIsUnknownIsOfANewerVersionAndIgnored) {
  EXPECT_EQ(ParseRunRecordJson(R"({"weather":{"t":1}})")->line_case(), v1::RunRecordLine::LINE_NOT_SET);
  const absl::StatusOr<v1::RunRecordLine> line = ParseRunRecordJson(R"({"progress":{"mode":"NEWER","new":3,"t":2}})");
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->progress().t(), 2);
}

TEST(RunRecordJsonTest, NamesTheFieldThatIsOfAnotherKind) {
  EXPECT_THAT(ErrorOf(R"({"end":{"t":"late"}})"), HasSubstr("end.t"));
  EXPECT_THAT(ErrorOf(R"({"progress":{"staleness_counts":[1,"x"]}})"), HasSubstr("progress.staleness_counts[1]"));
  EXPECT_THAT(ErrorOf(R"({"progress":{"workers":[{"index":-1}]}})"), HasSubstr("progress.workers[0].index"));
  for (const char* text : {"", "[1]", "{\"end\":{\"ok\":tr", "{} x"}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("not a line of the run record: ")) << text;
  }
}

}  // namespace
}  // namespace rubato
