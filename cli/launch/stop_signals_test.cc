#include "cli/launch/stop_signals.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "common/file_descriptor.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

bool CanBeRead(int descriptor, int timeout_ms) {
  struct pollfd event = {descriptor, POLLIN, 0};
  return poll(&event, 1, timeout_ms) == 1;
}

TEST(StopSignalsTest, ASignalIsTakenOnce) {
  auto signals = *StopSignals::Create();
  EXPECT_FALSE(signals->Take());
  kill(getpid(), SIGTERM);
  EXPECT_TRUE(CanBeRead(signals->descriptor(), 10000));
  EXPECT_TRUE(signals->Take());
  EXPECT_EQ(signals->reason(), "stopped by a signal");
  EXPECT_FALSE(signals->Take());
  EXPECT_FALSE(CanBeRead(signals->descriptor(), 0));
}

TEST(StopSignalsTest, TheEndOfAnInputIsOneToo) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  FileDescriptor reader(ends[0]);
  FileDescriptor writer(ends[1]);
  auto signals = *StopSignals::Create();
  ASSERT_TRUE(signals->AlsoAtEndOf(reader.get()).ok());
  ASSERT_EQ(write(writer.get(), "words", 5), 5);
  EXPECT_FALSE(signals->Take());
  EXPECT_FALSE(CanBeRead(signals->descriptor(), 0));
  writer.Close();
  EXPECT_TRUE(CanBeRead(signals->descriptor(), 10000));
  EXPECT_TRUE(signals->Take());
  EXPECT_EQ(signals->reason(), "stopped by the end of its standard input");
  // It stays at its end, and says so no more.
  EXPECT_FALSE(CanBeRead(signals->descriptor(), 0));
  EXPECT_FALSE(signals->Take());
  kill(getpid(), SIGINT);
  EXPECT_TRUE(CanBeRead(signals->descriptor(), 10000));
  EXPECT_TRUE(signals->Take());
  EXPECT_EQ(signals->reason(), "stopped by a signal");
}

}  // namespace
}  // namespace rubato
