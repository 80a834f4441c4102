#include "common/transport/poller.h"

#include <grpcpp/alarm.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <set>
#include <thread>

namespace rubato {
namespace {

class Alarm final : public Poller::Event {
 public:
  void Set(Poller* poller) { alarm_.Set(poller->queue(), std::chrono::system_clock::now(), tag()); }
  void OnEvent(bool ok) override { heard_.set_value({ok, std::this_thread::get_id()}); }

  struct Heard {
    bool ok;
    std::thread::id thread;
  };
  Heard Await() { return heard_.get_future().get(); }

 private:
  grpc::Alarm alarm_;
  std::promise<Heard> heard_;
};

TEST(PollerTest, OneThreadHearsOfAllEvents) {
  Poller poller(std::make_unique<grpc::CompletionQueue>());
  std::set<std::thread::id> threads;
  for (int i = 0; i < 20; ++i) {
    Alarm alarm;
    alarm.Set(&poller);
    const Alarm::Heard heard = alarm.Await();
    EXPECT_TRUE(heard.ok);
    threads.insert(heard.thread);
  }
  EXPECT_EQ(threads.size(), 1u);
  EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
}

TEST(PollerTest, SharedOnesAreAsManyAsTheHostHasUseFor) {
  const unsigned count = Poller::NumShared(std::thread::hardware_concurrency());
  std::set<std::shared_ptr<Poller>> pollers;
  for (unsigned i = 0; i < 3 * count; ++i) pollers.insert(Poller::Shared());
  EXPECT_EQ(pollers.size(), count);
}

TEST(PollerTest, SharedOnesEndWithTheirLastOwnerAndComeAgain) {
  for (int i = 0; i < 10; ++i) {
    Alarm alarm;
    const std::shared_ptr<Poller> poller = Poller::Shared();
    alarm.Set(poller.get());
    EXPECT_TRUE(alarm.Await().ok);
  }
}

TEST(PollerTest, HowManyAreShared) {
  EXPECT_EQ(Poller::NumShared(0), 1u);  // Unknown.
  EXPECT_EQ(Poller::NumShared(2), 1u);
  EXPECT_EQ(Poller::NumShared(15), 1u);
  EXPECT_EQ(Poller::NumShared(16), 2u);
  EXPECT_EQ(Poller::NumShared(128), 4u);
}

}  // namespace
}  // namespace rubato
