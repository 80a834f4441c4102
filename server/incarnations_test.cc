#include "server/incarnations.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/mutex.h"

namespace rubato::server {
namespace {

// Says what happened to which incarnation, and lets a test act while one is being made or runs.
struct World {
  std::vector<std::string> events;
  // Incarnations that are started again.
  int restarts = 0;
  std::function<void(int number)> while_made = [](int) {};
  std::function<void(int number)> while_running = [](int) {};
  absl::Status last = absl::OkStatus();
};

class FakeIncarnation : public Incarnation {
 public:
  FakeIncarnation(World* world, int number) : world_(world), number_(number) {
    world_->events.push_back("make " + std::to_string(number_));
    world_->while_made(number_);
  }
  ~FakeIncarnation() override { world_->events.push_back("end " + std::to_string(number_)); }
  absl::Status Run() override {
    world_->events.push_back("run " + std::to_string(number_));
    world_->while_running(number_);
    MutexLock lock(mu_);
    if (!cancelled_.ok()) return cancelled_;
    restarts_ = number_ <= world_->restarts;
    return restarts_ ? absl::OkStatus() : world_->last;
  }
  bool restarts() override {
    MutexLock lock(mu_);
    return restarts_;
  }
  void Cancel(absl::Status why) override {
    MutexLock lock(mu_);
    if (cancelled_.ok()) cancelled_ = std::move(why);
    changed_.NotifyAll();
  }
  void AwaitCancel() {
    MutexLock lock(mu_);
    while (cancelled_.ok()) {
      if (!changed_.WaitFor(mu_, absl::Seconds(30))) break;
    }
    EXPECT_FALSE(cancelled_.ok());
  }

 private:
  World* const world_;
  const int number_;
  Mutex mu_;
  CondVar changed_;
  bool restarts_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status cancelled_ ABSL_GUARDED_BY(mu_);
};

class IncarnationsTest : public testing::Test {
 protected:
  World world_;
  int made_ = 0;
  FakeIncarnation* newest_ = nullptr;
  Incarnations incarnations_{[this] {
    auto next = std::make_unique<FakeIncarnation>(&world_, ++made_);
    newest_ = next.get();
    return next;
  }};
};

TEST_F(IncarnationsTest, OneIsGoneBeforeTheNextIsMade) {
  world_.restarts = 2;
  world_.last = absl::AbortedError("the job failed");
  EXPECT_EQ(incarnations_.Run(), world_.last);
  EXPECT_EQ(world_.events, (std::vector<std::string>{"make 1", "run 1", "end 1", "make 2", "run 2", "end 2", "make 3",
                                                     "run 3", "end 3"}));
}

TEST_F(IncarnationsTest, ASignalReachesTheOneThatRuns) {
  world_.restarts = 1;
  std::thread signal;
  world_.while_running = [&](int number) {
    if (number != 2) return;
    signal = std::thread([&] { incarnations_.Cancel(absl::AbortedError("stopped by SIGTERM")); });
    newest_->AwaitCancel();
  };
  EXPECT_EQ(incarnations_.Run(), absl::AbortedError("stopped by SIGTERM"));
  signal.join();
  EXPECT_EQ(made_, 2);
}

TEST_F(IncarnationsTest, ASignalBetweenTwoLetsNoneRunAfterIt) {
  world_.restarts = 1;
  world_.while_made = [&](int number) {
    if (number == 2) incarnations_.Cancel(absl::AbortedError("stopped by SIGTERM"));
  };
  EXPECT_EQ(incarnations_.Run(), absl::AbortedError("stopped by SIGTERM"));
  EXPECT_EQ(world_.events, (std::vector<std::string>{"make 1", "run 1", "end 1", "make 2", "end 2"}));
}

}  // namespace
}  // namespace rubato::server
