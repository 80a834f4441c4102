#include "cli/capacity/event_queue.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato::capacity {
namespace {

class Recorder : public EventTarget {
 public:
  explicit Recorder(EventQueue* queue) : queue_(queue) {}
  void OnEvent(uint64_t what) override {
    seen.push_back(what);
    at.push_back(queue_->now());
  }

  std::vector<uint64_t> seen;
  std::vector<SimTime> at;

 private:
  EventQueue* const queue_;
};

TEST(EventQueueTest, GoesInOrderOfTimeAndThenOfScheduling) {
  EventQueue queue;
  Recorder recorder(&queue);
  queue.At(20, &recorder, 1);
  queue.At(10, &recorder, 2);
  queue.At(20, &recorder, 3);
  queue.At(10, &recorder, 4);
  while (queue.RunNext()) continue;
  EXPECT_THAT(recorder.seen, testing::ElementsAre(2, 4, 1, 3));
  EXPECT_THAT(recorder.at, testing::ElementsAre(10, 10, 20, 20));
  EXPECT_EQ(queue.run(), 4);
}

TEST(EventQueueTest, SaysWhenThereIsNothing) {
  EventQueue queue;
  EXPECT_FALSE(queue.RunNext());
  EXPECT_EQ(queue.now(), 0);
}

}  // namespace
}  // namespace rubato::capacity
