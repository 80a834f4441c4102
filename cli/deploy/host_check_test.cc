#include "cli/deploy/host_check.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kGood[] =
    "system Linux\nmachine x86_64\nglibc 2.36\nseconds 1000\ngpus 2\nfree_kib 4096\nhas packages/a/complete\n";
const absl::Time kNow = absl::FromUnixSeconds(1000);

TEST(HostCheckTest, FindsNothingWrongWithAGoodHost) {
  absl::StatusOr<HostFacts> facts = ParseHostFacts(kGood);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->gpus, 2);
  EXPECT_EQ(facts->stored.count("packages/a/complete"), 1u);
  EXPECT_THAT(HostProblems(*facts, {.machine = "x86_64", .glibc = "2.34", .free_kib = 4096, .gpus = 2}, kNow, kNow),
              IsEmpty());
}

TEST(HostCheckTest, AWorkersGpusHaveToBeThere) {
  EXPECT_THAT(HostProblems(*ParseHostFacts(kGood), {.machine = "x86_64", .gpus = 4}, kNow, kNow),
              ElementsAre("it has 2 of the 4 GPUs that training.gpus takes"));
}

TEST(HostCheckTest, NamesEverythingThatIsWrong) {
  absl::StatusOr<HostFacts> facts = ParseHostFacts(
      "missing tar\nmissing awk\nsystem Linux\nmachine aarch64\nglibc 2.9\nseconds 900\ngpus 0\nfree_kib 2048\n"
      "taken 7000\ntaken 7001\n");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_THAT(HostProblems(*facts, {.machine = "x86_64", .glibc = "2.34", .free_kib = 4096, .gpus = 2}, kNow, kNow),
              ElementsAre(HasSubstr("Linux aarch64; the package is for Linux x86_64"), HasSubstr("glibc is 2.9;"),
                          HasSubstr("missing: tar, awk"), HasSubstr("2 MiB are free"), "port 7000 is taken",
                          "port 7001 is taken", HasSubstr("no GPU"), HasSubstr("its clock is 1m39s behind")));
}

TEST(HostCheckTest, ADirectoryThatCannotBeUsedHasItsReason) {
  absl::StatusOr<HostFacts> facts = ParseHostFacts(
      "system Linux\nmachine x86_64\nglibc\nseconds 1000\ngpus 0\nunwritable mkdir: a file system: full\n");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_THAT(HostProblems(*facts, {.machine = "x86_64", .free_kib = 1}, kNow, kNow),
              ElementsAre("its directory cannot be used: mkdir: a file system: full"));
}

TEST(HostCheckTest, ASlowAnswerIsNoWrongClock) {
  const HostFacts facts = *ParseHostFacts(kGood);
  const HostNeeds needs = {.machine = "x86_64", .clock_offset_max = absl::Seconds(1)};
  EXPECT_THAT(HostProblems(facts, needs, kNow - absl::Seconds(30), kNow + absl::Seconds(30)), IsEmpty());
  EXPECT_THAT(HostProblems(facts, needs, kNow - absl::Seconds(5), kNow - absl::Seconds(4)),
              ElementsAre("its clock is 4s ahead; at most 1s are allowed"));
}

TEST(HostCheckTest, RefusesWhatIsNoAnswer) {
  EXPECT_THAT(std::string(ParseHostFacts("Welcome to host a!\n").status().message()), HasSubstr("Welcome to host a!"));
  EXPECT_FALSE(ParseHostFacts("").ok());
  EXPECT_FALSE(ParseHostFacts("gpus many\n").ok());
  EXPECT_FALSE(ParseHostFacts("taken -1\n").ok());
}

TEST(HostCheckTest, ComparesVersionsByTheirNumbers) {
  EXPECT_TRUE(VersionLess("2.9", "2.34"));
  EXPECT_TRUE(VersionLess("", "2.34"));
  EXPECT_FALSE(VersionLess("2.36", "2.34"));
  EXPECT_FALSE(VersionLess("2.34", "2.34"));
}

}  // namespace
}  // namespace rubato
