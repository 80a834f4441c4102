#include "tests/explorer/schedule.h"

#include <algorithm>
#include <utility>

#include "tests/explorer/fingerprint.h"

namespace rubato::explorer {

uint64_t Schedule::NameOf(const Event& event) { return FingerprintOf(event.actor, event.content); }

uint64_t Schedule::Share(uint64_t actor, uint64_t inputs) { return inputs == 0 ? 0 : FingerprintOf(actor, inputs); }

uint64_t Schedule::InputsOf(uint64_t actor) const {
  auto found = inputs_.find(actor);
  return found == inputs_.end() ? 0 : found->second;
}

void Schedule::Post(Event event) { events_.push_back(std::move(event)); }

void Schedule::Withdraw(uint64_t tag) {
  auto has_tag = [tag](const Event& event) { return event.tag == tag; };
  events_.erase(std::remove_if(events_.begin(), events_.end(), has_tag), events_.end());
}

void Schedule::Withdraw(uint64_t tag, uint64_t actor) {
  auto is_one = [tag, actor](const Event& event) { return event.tag == tag && event.actor == actor; };
  events_.erase(std::remove_if(events_.begin(), events_.end(), is_one), events_.end());
}

void Schedule::WithdrawInputs(uint64_t actor) {
  auto is_one = [actor](const Event& event) { return event.actor == actor; };
  events_.erase(std::remove_if(events_.begin(), events_.end(), is_one), events_.end());
}

std::vector<const Schedule::Event*> Schedule::Possible() const {
  std::vector<const Event*> possible;
  std::vector<uint64_t> channels;
  for (const Event& event : events_) {
    if (event.channel != 0) {
      if (std::find(channels.begin(), channels.end(), event.channel) != channels.end()) continue;
      channels.push_back(event.channel);
    }
    if (!event.possible || event.possible()) possible.push_back(&event);
  }
  auto can_wait = [](const Event* event) { return !event->urgent; };
  if (!std::all_of(possible.begin(), possible.end(), can_wait)) {
    possible.erase(std::remove_if(possible.begin(), possible.end(), can_wait), possible.end());
  }
  return possible;
}

uint64_t Schedule::AllInputsAfter(const Event& event) const {
  uint64_t all = all_inputs_;
  auto learns = [&](uint64_t actor) {
    const uint64_t before = InputsOf(actor);
    all += Share(actor, Mix(before, event.content)) - Share(actor, before);
  };
  learns(event.actor);
  for (uint64_t other : event.also) learns(other);
  return all;
}

std::vector<System::Choice> Schedule::Choices() const {
  std::vector<System::Choice> choices;
  for (const Event* event : Possible()) {
    const uint64_t name = NameOf(*event);
    const bool known = std::any_of(choices.begin(), choices.end(),
                                   [name](const System::Choice& choice) { return choice.event == name; });
    if (known) continue;  // The same for its actor.
    choices.push_back({name, AllInputsAfter(*event)});
  }
  return choices;
}

void Schedule::Run(const Event* event) {
  const Event taken = *event;
  events_.erase(events_.begin() + (event - events_.data()));
  all_inputs_ = AllInputsAfter(taken);
  inputs_[taken.actor] = Mix(InputsOf(taken.actor), taken.content);
  for (uint64_t other : taken.also) inputs_[other] = Mix(InputsOf(other), taken.content);
  taken.run();
}

uint64_t Schedule::Fingerprint() const {
  uint64_t sum = 0;
  std::map<uint64_t, uint64_t> channels;
  for (const Event& event : events_) {
    if (event.channel == 0) {
      sum += FingerprintOf(NameOf(event));
    } else {
      uint64_t& channel = channels[event.channel];
      channel = Mix(channel, NameOf(event));
    }
  }
  for (const auto& [channel, content] : channels) sum += FingerprintOf(channel, content);
  return sum;
}

void Schedule::Take(uint64_t event) {
  for (const Event* possible : Possible()) {
    if (NameOf(*possible) == event) return Run(possible);
  }
}

void Schedule::TakeFirst() { Run(Possible().front()); }

std::string Schedule::LabelOf(uint64_t event) const {
  for (const Event& candidate : events_) {
    if (NameOf(candidate) == event) return candidate.label;
  }
  return "an event that cannot come";
}

}  // namespace rubato::explorer
