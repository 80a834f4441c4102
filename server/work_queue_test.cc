#include "server/work_queue.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <vector>

namespace rubato::server {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(30);

// Happens once; others wait for it.
class Event {
 public:
  void Set() {
    MutexLock lock(mu_);
    set_ = true;
    changed_.NotifyAll();
  }
  bool Await() {
    MutexLock lock(mu_);
    while (!set_) {
      if (!changed_.WaitFor(mu_, kTimeout)) return set_;
    }
    return true;
  }

 private:
  Mutex mu_;
  CondVar changed_;
  bool set_ ABSL_GUARDED_BY(mu_) = false;
};

TEST(WorkQueueTest, DoesWhatIsPostedInOrderOnOneThread) {
  RealClock clock;
  std::vector<int> done;
  std::vector<std::thread::id> threads;
  Event last;
  WorkQueue queue(&clock, [](absl::Time) {});
  for (int i = 0; i < 100; ++i) {
    queue.Post([&, i] {
      done.push_back(i);
      threads.push_back(std::this_thread::get_id());
    });
  }
  queue.Post([&] { last.Set(); });
  ASSERT_TRUE(last.Await());
  ASSERT_EQ(done.size(), 100u);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(done[i], i);
    EXPECT_EQ(threads[i], threads[0]);
  }
  EXPECT_NE(threads[0], std::this_thread::get_id());
}

TEST(WorkQueueTest, NobodyElseIsAtWorkMeanwhile) {
  RealClock clock;
  Event begun, end;
  WorkQueue queue(&clock, [](absl::Time) {});
  queue.Post([&] {
    begun.Set();
    EXPECT_TRUE(end.Await());
  });
  ASSERT_TRUE(begun.Await());
  bool ran = false;
  EXPECT_FALSE(queue.TryRun([&] { ran = true; }));
  EXPECT_FALSE(ran);
  end.Set();
}

TEST(WorkQueueTest, SaysHowMuchOfAKindComesAfterIt) {
  RealClock clock;
  Event begun, end, last;
  std::vector<size_t> more;
  WorkQueue queue(&clock, [](absl::Time) {});
  queue.Post([&] {
    begun.Set();
    EXPECT_TRUE(end.Await());
  });
  ASSERT_TRUE(begun.Await());
  const auto count = [&] { more.push_back(queue.MoreOf(7)); };
  queue.Post(count, 7);
  queue.Post(count);
  queue.Post(count, 8);
  queue.Post(count, 7);
  queue.Post(count, 7);
  queue.Post([&] { last.Set(); });
  end.Set();
  ASSERT_TRUE(last.Await());
  EXPECT_EQ(more, std::vector<size_t>({2, 2, 2, 1, 0}));
}

TEST(WorkQueueTest, WhoeverBringsWorkToAnIdleQueueDoesIt) {
  RealClock clock;
  WorkQueue queue(&clock, [](absl::Time) {});
  std::optional<std::thread::id> thread;
  // The thread may be looking whether there is something to do.
  const absl::Time deadline = clock.Now() + kTimeout;
  while (!thread.has_value() && clock.Now() < deadline) {
    queue.TryRun([&] { thread = std::this_thread::get_id(); });
  }
  EXPECT_EQ(thread, std::this_thread::get_id());
}

TEST(WorkQueueTest, TicksWithoutWork) {
  RealClock clock;
  Event ticked;
  WorkQueue queue(&clock, [&](absl::Time) { ticked.Set(); });
  EXPECT_TRUE(ticked.Await());
}

TEST(WorkQueueTest, DropsWhatWaitsWhenItStops) {
  RealClock clock;
  WorkQueue queue(&clock, [](absl::Time) {});
  queue.Stop();
  bool ran = false;
  queue.Post([&] { ran = true; });
  EXPECT_FALSE(queue.TryRun([&] { ran = true; }));
  queue.Stop();
  EXPECT_EQ(queue.length(), 1u);
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace rubato::server
