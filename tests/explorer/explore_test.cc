#include "tests/explorer/explore.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/explorer/fingerprint.h"

namespace rubato::explorer {
namespace {

constexpr int kMostActors = 6;

// Actors that each do so many things, one after another. What they do is up to the test.
class Steps : public System {
 public:
  Steps(int actors, int steps) : actors_(actors), steps_(steps) {}

  void Restart() override {
    done_ = {};
    DoRestart();
  }
  uint64_t Fingerprint() const override { return FingerprintWith(-1); }
  std::vector<Choice> Choices() const override {
    std::vector<Choice> choices;
    for (int actor = 0; actor < actors_; ++actor) {
      if (done_[actor] < steps_) choices.push_back({static_cast<uint64_t>(actor), FingerprintWith(actor)});
    }
    return choices;
  }
  void Take(uint64_t event) override { Do(static_cast<int>(event), done_[event]++); }
  std::string Violation() const override { return ""; }
  std::string Unfinished() const override { return ""; }

 protected:
  virtual void DoRestart() {}
  virtual void Do(int /*actor*/, int /*step*/) {}
  // `actor`: who does one more; -1 for nobody.
  virtual uint64_t FingerprintWith(int actor) const {
    uint64_t fingerprint = 0;
    for (int i = 0; i < actors_; ++i) {
      fingerprint = Mix(fingerprint, static_cast<uint64_t>(done_[i] + (i == actor ? 1 : 0)));
    }
    return fingerprint;
  }
  int done(int actor) const { return done_[actor]; }

 private:
  const int actors_;
  const int steps_;
  std::array<int, kMostActors> done_ = {};
};

TEST(Explore, VisitsEveryOrderOfIndependentEvents) {
  Steps system(4, 1);
  const Exploration all = Explore(&system, {.merge = false});
  EXPECT_TRUE(all.complete);
  EXPECT_EQ(all.ends, 24);  // 4!
  EXPECT_EQ(all.orders, 24);
  EXPECT_EQ(all.depth, 4);
  EXPECT_EQ(all.states, 1 + 4 + 12 + 24 + 24);
}

TEST(Explore, VisitsAStateOnceAndCoversAllOrders) {
  Steps system(4, 1);
  const Exploration merged = Explore(&system, {});
  EXPECT_TRUE(merged.complete);
  EXPECT_EQ(merged.states, 16);       // 2^4
  EXPECT_EQ(merged.transitions, 32);  // 4 * 2^3
  EXPECT_EQ(merged.ends, 1);
  EXPECT_EQ(merged.orders, 24);
}

TEST(Explore, CountsOrdersThatAreTooManyToVisit) {
  Steps system(3, 10);
  const Exploration merged = Explore(&system, {});
  EXPECT_EQ(merged.states, 11 * 11 * 11);
  EXPECT_EQ(merged.depth, 30);
  EXPECT_NEAR(merged.orders / 5550996791340, 1, 1e-9);  // 30! / 10!^3
}

TEST(Explore, SaysThatItIsNotCompleteAtTheLimit) {
  Steps system(4, 1);
  const Exploration some = Explore(&system, {.max_states = 15});
  EXPECT_FALSE(some.complete);
  EXPECT_EQ(some.states, 16);  // The one that was too many.
  EXPECT_EQ(some.violation, "");
  EXPECT_TRUE(Explore(&system, {.max_states = 16}).complete);
}

// Each actor reads a counter, and writes what it read and one more.
class Counter : public Steps {
 public:
  explicit Counter(bool atomic) : Steps(2, 2), atomic_(atomic) {}

  std::string Violation() const override {
    if (done(0) < 2 || done(1) < 2 || counter_ == 2) return "";
    return "an update is lost";
  }

 protected:
  void DoRestart() override { counter_ = 0, read_ = {}, order_ = 0; }
  void Do(int actor, int step) override {
    order_ = Mix(order_, static_cast<uint64_t>(actor * 2 + step));
    if (step == 0) read_[actor] = counter_;
    if (step == 1) counter_ = (atomic_ ? counter_ : read_[actor]) + 1;
  }
  // Both use the counter: every order is a state of its own.
  uint64_t FingerprintWith(int actor) const override {
    return actor < 0 ? order_ : Mix(order_, static_cast<uint64_t>(actor * 2 + done(actor)));
  }

 private:
  const bool atomic_;
  int counter_ = 0;
  std::array<int, 2> read_ = {};
  uint64_t order_ = 0;
};

TEST(Explore, FindsTheOrderInWhichACounterLosesAnUpdate) {
  Counter broken(/*atomic=*/false);
  for (bool merge : {false, true}) {
    const Exploration found = Explore(&broken, {.merge = merge});
    EXPECT_EQ(found.violation, "an update is lost");
    EXPECT_FALSE(found.complete);
    ASSERT_EQ(found.path.size(), 4u);
    // The second read comes before the first write.
    EXPECT_NE(found.path[0], found.path[1]);
  }
  Counter good(/*atomic=*/true);
  const Exploration all = Explore(&good, {});
  EXPECT_EQ(all.violation, "");
  EXPECT_TRUE(all.complete);
  EXPECT_EQ(all.orders, 6);
}

// Two actors take two locks, in opposite orders or not; nobody gives one back before it has both.
class Locks : public Steps {
 public:
  explicit Locks(bool opposite) : Steps(2, 2), opposite_(opposite) {}

  std::vector<Choice> Choices() const override {
    std::vector<Choice> choices;
    for (const Choice& choice : Steps::Choices()) {
      const int actor = static_cast<int>(choice.event);
      if (!Has(1 - actor, Wanted(actor, done(actor)))) choices.push_back(choice);
    }
    return choices;
  }
  std::string Unfinished() const override { return done(0) + done(1) == 4 ? "" : "they wait for each other"; }

 private:
  int Wanted(int actor, int step) const { return opposite_ && actor == 1 ? 1 - step : step; }
  bool Has(int actor, int lock) const {
    return done(actor) == 1 && Wanted(actor, 0) == lock;  // With both it gives them back.
  }

  const bool opposite_;
};

TEST(Explore, FindsADeadlock) {
  Locks opposite(/*opposite=*/true);
  const Exploration found = Explore(&opposite, {});
  EXPECT_EQ(found.violation, "they wait for each other");
  EXPECT_EQ(found.path.size(), 2u);
  Locks same(/*opposite=*/false);
  EXPECT_TRUE(Explore(&same, {}).complete);
}

}  // namespace
}  // namespace rubato::explorer
