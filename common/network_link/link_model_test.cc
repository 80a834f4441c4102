#include "common/network_link/link_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rubato {
namespace {

using ::testing::HasSubstr;

TEST(LinkModelTest, ReadsLatencyAndRate) {
  const LinkModel both = {.latency = absl::Milliseconds(10), .bytes_per_second = 12.5e6};
  EXPECT_EQ(ParseLink("latency=10ms,rate=100mbit").value(), both);
  EXPECT_EQ(ParseLink("rate=100mbit,latency=10ms").value(), both);
  EXPECT_EQ(ParseLink("rate=2.5gbit").value(), (LinkModel{.bytes_per_second = 312.5e6}));
  EXPECT_EQ(ParseLink("rate=64kbit").value(), (LinkModel{.bytes_per_second = 8000}));
  EXPECT_EQ(ParseLink("latency=0").value(), LinkModel());
}

TEST(LinkModelTest, WritesWhatItReads) {
  for (const char* text : {"latency=10ms,rate=100mbit", "latency=1.5s", "rate=1.5gbit", "rate=64kbit"}) {
    EXPECT_EQ(FormatLink(ParseLink(text).value()), text);
  }
  EXPECT_EQ(FormatLink({}), "");
}

TEST(LinkModelTest, SaysWhatIsWrong) {
  const auto error = [](const char* text) { return std::string(ParseLink(text).status().message()); };
  EXPECT_THAT(error(""), HasSubstr("\"\": \"\" is neither a latency nor a rate; allowed: latency=TIME"));
  EXPECT_THAT(error("latency=10"), HasSubstr("the latency is \"10\""));
  EXPECT_THAT(error("latency=-1ms"), HasSubstr("the latency is \"-1ms\""));
  EXPECT_THAT(error("latency=11s"), HasSubstr("the latency is \"11s\""));
  EXPECT_THAT(error("rate=100"), HasSubstr("the rate is \"100\""));
  EXPECT_THAT(error("rate=mbit"), HasSubstr("the rate is \"mbit\""));
  EXPECT_THAT(error("rate=0.1kbit"), HasSubstr("the rate is \"0.1kbit\""));
  EXPECT_THAT(error("rate=nangbit"), HasSubstr("the rate is \"nangbit\""));
  EXPECT_THAT(error("latency=1ms,latency=2ms"), HasSubstr("two latencies"));
  EXPECT_THAT(error("rate=1mbit,rate=1mbit"), HasSubstr("two rates"));
}

TEST(LinkModelTest, AFlagsErrorsNameIt) {
  EXPECT_TRUE(ParseLinkOf("--network", "")->is_none());
  EXPECT_THAT(ParseLinkOf("--network", "x3").status().message(), HasSubstr("--network: value: \"x3\": "));
}

TEST(LinkShaperTest, BytesArriveOneAfterAnotherAndLater) {
  LinkShaper shaper({.latency = absl::Milliseconds(10), .bytes_per_second = 1e6});
  const absl::Time begin = absl::UnixEpoch();
  EXPECT_EQ(shaper.Send(1000, begin) - begin, absl::Milliseconds(11));
  // Behind the first.
  EXPECT_EQ(shaper.Send(1000, begin) - begin, absl::Milliseconds(12));
  // The link has been free meanwhile.
  EXPECT_EQ(shaper.Send(1000, begin + absl::Seconds(1)) - begin, absl::Milliseconds(1011));
}

TEST(LinkShaperTest, WithoutARateBytesDoNotWaitForEachOther) {
  LinkShaper shaper({.latency = absl::Milliseconds(10)});
  EXPECT_EQ(shaper.Send(1 << 30, absl::UnixEpoch()), absl::UnixEpoch() + absl::Milliseconds(10));
  EXPECT_EQ(shaper.Send(1 << 30, absl::UnixEpoch()), absl::UnixEpoch() + absl::Milliseconds(10));
}

}  // namespace
}  // namespace rubato
