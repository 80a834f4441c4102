#ifndef RUBATO_TESTS_EXPLORER_SCHEDULE_H_
#define RUBATO_TESTS_EXPLORER_SCHEDULE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/explorer/explore.h"

namespace rubato::explorer {

// The events of a model that can come next: messages to deliver, and what actors may do by themselves. Each is an input
// of one actor. Actors are deterministic, so what an actor is follows from the inputs that it had, and what is under
// way from what all of them are: a choice leads to what the inputs of all actors say, each in their order. Whatever an
// event does to the schedule must follow from these too, and not from the order of inputs of different actors. Not
// thread-safe.
class Schedule {
 public:
  struct Event {
    uint64_t actor = 0;
    // Fingerprint of all that the actor learns from it.
    uint64_t content = 0;
    // Events of one channel come in the order in which they were posted; those of channel 0 in any.
    uint64_t channel = 0;
    // For Withdraw.
    uint64_t tag = 0;
    std::function<void()> run;
    // Whether it can come now; always if not given. Follows from what the actor is.
    std::function<bool()> possible = {};
    // For people.
    std::string label = {};
    // Other actors that learn it at the same time.
    std::vector<uint64_t> also = {};
    // While there is one, nothing comes that is not.
    bool urgent = false;
  };

  void Post(Event event);
  // Drops all events with this tag, or those among them that are inputs of `actor`.
  void Withdraw(uint64_t tag);
  void Withdraw(uint64_t tag, uint64_t actor);
  // All inputs of this actor.
  void WithdrawInputs(uint64_t actor);

  std::vector<System::Choice> Choices() const;
  void Take(uint64_t event);
  // The one that was posted first. REQUIRES: one can come.
  void TakeFirst();
  // Of the inputs that the actor had, in their order; 0 for none.
  uint64_t InputsOf(uint64_t actor) const;
  // Of all events that are there, and the order within channels.
  uint64_t Fingerprint() const;
  std::string LabelOf(uint64_t event) const;

 private:
  static uint64_t NameOf(const Event& event);
  // What an actor contributes to all_inputs_.
  static uint64_t Share(uint64_t actor, uint64_t inputs);
  std::vector<const Event*> Possible() const;
  // all_inputs_ when it has come.
  uint64_t AllInputsAfter(const Event& event) const;
  void Run(const Event* event);

  std::vector<Event> events_;            // In the order in which they were posted.
  std::map<uint64_t, uint64_t> inputs_;  // By actor: fingerprint of those that it had.
  uint64_t all_inputs_ = 0;              // The sum of all shares.
};

}  // namespace rubato::explorer

#endif  // RUBATO_TESTS_EXPLORER_SCHEDULE_H_
