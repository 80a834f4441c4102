#include "cli/doctor/machine.h"

#include <gtest/gtest.h>

#include "cli/doctor/disk_speed.h"
#include "cli/doctor/exchange_probe.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

TEST(MachineTest, TellsOfThisMachine) {
  const CpuFacts cpu = MeasureCpu();
  EXPECT_GE(cpu.cores, cpu.allowed_cores);
  EXPECT_GE(cpu.allowed_cores, 1);
  ASSERT_FALSE(cpu.instruction_sets.empty());
  EXPECT_EQ(cpu.instruction_sets[0], "baseline");
  const MemoryFacts memory = MeasureMemory();
  EXPECT_GT(memory.total_bytes, int64_t{1} << 20);
  EXPECT_LE(memory.available_bytes, memory.total_bytes);
  const ClockFacts clock = MeasureClock();
  EXPECT_GT(clock.resolution, absl::ZeroDuration());
  EXPECT_LT(clock.step, absl::Seconds(1));
  EXPECT_NE(OpenFilesLimit().now, 0);
}

TEST(MachineTest, APortThatIsListenedOnIsNotFree) {
  auto server = ProbeServer::Create("0.0.0.0:0");
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_FALSE(TryPort((*server)->port()).ok());
  EXPECT_TRUE(TryPort(0).ok());
}

TEST(MachineTest, MeasuresADiskAndLeavesNothingBehind) {
  RealClock clock;
  const std::string directory = testing::TempDir() + "/disk";
  ASSERT_TRUE(MakeDirectories(directory).ok());
  auto facts = MeasureDisk(directory, int64_t{3} << 20, &clock);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_GT(facts->bytes_per_second, 0);
  EXPECT_GT(facts->free_bytes, 0);
  EXPECT_TRUE(ListDirectory(directory)->empty());
}

TEST(MachineTest, ARunDirectoryThatIsNotThereYetIsOnTheDiskAboveIt) {
  RealClock clock;
  auto facts = MeasureDisk(testing::TempDir() + "/not/there/yet", 1 << 20, &clock);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_FALSE(FileExists(testing::TempDir() + "/not"));
}

TEST(MachineTest, ADirectoryThatCannotBeWrittenIsAnError) {
  RealClock clock;
  EXPECT_FALSE(MeasureDisk("/proc/self", 1 << 20, &clock).ok());
}

}  // namespace
}  // namespace rubato
