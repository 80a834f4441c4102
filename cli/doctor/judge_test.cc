#include "cli/doctor/judge.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

using ::testing::HasSubstr;

JobNeeds Needs() { return {.weight_bytes = 100 << 20, .server_bytes = 400 << 20, .tasks = 6}; }

CpuFacts GoodCpu() { return {"a processor", 16, 8, {"baseline", "sse4.2", "avx2", "avx512"}}; }

ClockFacts GoodClock() { return {absl::Nanoseconds(1), absl::Nanoseconds(20), true, absl::Milliseconds(3)}; }

TEST(JudgeTest, CpuNamesWhatKernelsAreTaken) {
  EXPECT_EQ(JudgeCpu(GoodCpu()).verdict, Verdict::kOk);
  EXPECT_THAT(JudgeCpu(GoodCpu()).text, HasSubstr("a processor, 8 of 16 cores"));
  EXPECT_THAT(JudgeCpu(GoodCpu()).text, HasSubstr("avx2, avx512"));
  CpuFacts old = GoodCpu();
  old.instruction_sets = {"baseline", "sse4.2"};
  EXPECT_EQ(JudgeCpu(old).verdict, Verdict::kWarning);
  CpuFacts alone = GoodCpu();
  alone.allowed_cores = 1;
  EXPECT_EQ(JudgeCpu(alone).verdict, Verdict::kWarning);
}

TEST(JudgeTest, ADeviceThatWasAskedForAndDoesNotWorkIsAProblem) {
  EXPECT_EQ(JudgeDevice(std::string("the CPU")).verdict, Verdict::kOk);
  const Finding finding = JudgeDevice(absl::FailedPreconditionError("training.device: CUDA: there is no driver"));
  EXPECT_EQ(finding.verdict, Verdict::kProblem);
  EXPECT_THAT(finding.text, HasSubstr("no driver"));
  EXPECT_NE(finding.next_step, "");
}

TEST(JudgeTest, MemoryIsComparedWithWhatTheJobHolds) {
  const MemoryFacts memory = {.total_bytes = int64_t{2} << 30, .available_bytes = 300 << 20};
  EXPECT_EQ(JudgeMemory(memory, {}).verdict, Verdict::kOk);
  EXPECT_EQ(JudgeMemory(memory, Needs()).verdict, Verdict::kWarning);
  EXPECT_EQ(JudgeMemory({memory.total_bytes, int64_t{1} << 30}, Needs()).verdict, Verdict::kOk);
}

TEST(JudgeTest, OpenFilesMustDoForTheJobsTasks) {
  EXPECT_EQ(JudgeOpenFiles({-1, -1}, Needs()).verdict, Verdict::kOk);
  EXPECT_EQ(JudgeOpenFiles({1024, 4096}, Needs()).verdict, Verdict::kOk);
  EXPECT_EQ(JudgeOpenFiles({256, 4096}, Needs()).verdict, Verdict::kWarning);
  EXPECT_EQ(JudgeOpenFiles({80, 4096}, Needs()).verdict, Verdict::kProblem);
  EXPECT_THAT(JudgeOpenFiles({80, 4096}, Needs()).next_step, HasSubstr("88"));
}

TEST(JudgeTest, WithoutSharedMemoryTasksUseTcp) {
  EXPECT_EQ(JudgeSharedMemory(absl::OkStatus()).verdict, Verdict::kOk);
  EXPECT_EQ(JudgeSharedMemory(absl::UnavailableError("memfd_create: not permitted")).verdict, Verdict::kWarning);
}

TEST(JudgeTest, ClockIsFineFollowsNtpOrIsWarnedOf) {
  EXPECT_EQ(JudgeClock(GoodClock()).verdict, Verdict::kOk);
  EXPECT_THAT(JudgeClock(GoodClock()).text, HasSubstr("follows NTP, to 3ms"));
  ClockFacts coarse = GoodClock();
  coarse.resolution = absl::Milliseconds(4);
  EXPECT_EQ(JudgeClock(coarse).verdict, Verdict::kWarning);
  ClockFacts alone = GoodClock();
  alone.synchronised = false;
  EXPECT_EQ(JudgeClock(alone).verdict, Verdict::kWarning);
  alone.synchronised = std::nullopt;
  EXPECT_EQ(JudgeClock(alone).verdict, Verdict::kOk);
}

TEST(JudgeTest, APortThatIsTakenIsAProblem) {
  EXPECT_EQ(JudgePort(7070, absl::OkStatus()).verdict, Verdict::kOk);
  const Finding finding = JudgePort(7070, absl::UnavailableError("Address already in use"));
  EXPECT_EQ(finding.verdict, Verdict::kProblem);
  EXPECT_EQ(finding.subject, "port 7070");
}

TEST(JudgeTest, DiskMustTakeTheCheckpointsAndShouldBeQuick) {
  const DiskFacts good = {"/runs", 500e6, int64_t{10} << 30};
  EXPECT_EQ(JudgeDisk(good, Needs()).verdict, Verdict::kOk);
  EXPECT_EQ(JudgeDisk(DiskFacts{"/runs", 20e6, int64_t{10} << 30}, Needs()).verdict, Verdict::kWarning);
  EXPECT_EQ(JudgeDisk(DiskFacts{"/runs", 500e6, 700 << 20}, Needs()).verdict, Verdict::kProblem);
  EXPECT_EQ(JudgeDisk(absl::PermissionDeniedError("/runs: denied"), Needs()).verdict, Verdict::kProblem);
}

TEST(JudgeTest, AWayIsJudgedByRateAndRoundTrip) {
  const ExchangeFacts good = {2e9, absl::Microseconds(80)};
  EXPECT_EQ(JudgeLoopback(good, {}).verdict, Verdict::kOk);
  EXPECT_THAT(JudgeLoopback(good, {}).text, HasSubstr("2000 MB/s pushed and pulled, round trip 80 us"));
  // 200 MiB both ways at 2 GB/s.
  EXPECT_THAT(JudgeLoopback(good, Needs()).text, HasSubstr("push and pull of 100.0 MiB of weights takes 104.9 ms"));
  EXPECT_EQ(JudgeLoopback(ExchangeFacts{1e8, absl::Microseconds(80)}, {}).verdict, Verdict::kWarning);
  EXPECT_EQ(JudgeLoopback(absl::UnavailableError("no"), {}).verdict, Verdict::kProblem);
  EXPECT_EQ(JudgePeer("h:1", good, {}).verdict, Verdict::kOk);
  EXPECT_EQ(JudgePeer("h:1", ExchangeFacts{5e7, absl::Microseconds(80)}, {}).verdict, Verdict::kWarning);
  EXPECT_EQ(JudgePeer("h:1", ExchangeFacts{2e9, absl::Milliseconds(30)}, {}).verdict, Verdict::kWarning);
  const Finding unreachable = JudgePeer("h:1", absl::UnavailableError("nobody answers"), {});
  EXPECT_EQ(unreachable.verdict, Verdict::kProblem);
  EXPECT_EQ(unreachable.subject, "peer h:1");
}

TEST(JudgeTest, FindingsAreLinesWithTheirNextSteps) {
  const std::vector<Finding> findings = {{Verdict::kOk, "cpu", "good", ""},
                                         {Verdict::kProblem, "port 7070", "taken", "stop it"}};
  EXPECT_EQ(FormatFindings(findings),
            "ok       cpu        good\n"
            "PROBLEM  port 7070  taken\n"
            "                    -> stop it\n"
            "1 ok, 0 warnings, 1 problems\n");
  EXPECT_TRUE(HasProblem(findings));
  EXPECT_FALSE(HasProblem({findings[0]}));
}

}  // namespace
}  // namespace rubato
