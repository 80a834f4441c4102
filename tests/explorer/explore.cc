#include "tests/explorer/explore.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace rubato::explorer {
namespace {

class Search {
 public:
  Search(System* system, const ExploreOptions& options) : system_(system), options_(options) {}

  Exploration Run();

 private:
  // A state on the way from the initial one to the present one.
  struct Frame {
    uint64_t fingerprint = 0;
    uint64_t reached_by = 0;  // leads_to of the choice.
    std::vector<System::Choice> choices;
    size_t next = 0;  // The first choice that was not looked at.
    double orders = 0;
  };

  // The system is in a state that was not visited before: judges it. False to end the search.
  bool Enter(uint64_t reached_by);
  // Looks at the next choice of the last frame. False to end the search.
  bool LookAt(const System::Choice& choice);
  void Leave();
  // Brings the system to the state of the last frame.
  void Return();
  void Take(uint64_t event);
  bool Violate(std::string what);

  System* const system_;
  const ExploreOptions options_;
  Exploration result_;
  std::vector<Frame> stack_;
  std::vector<uint64_t> path_;  // Events between the frames.
  size_t position_ = 0;         // Events of the path that the system has taken.
  bool is_there_ = false;       // Whether the system is in a state of the path at all.
  // Orders from there to an end: by leads_to, and by fingerprint of the states.
  absl::flat_hash_map<uint64_t, double> by_way_;
  absl::flat_hash_map<uint64_t, double> by_state_;
};

void Search::Take(uint64_t event) {
  system_->Take(event);
  ++result_.executed;
  ++position_;
}

void Search::Return() {
  if (is_there_ && position_ == path_.size()) return;
  system_->Restart();
  position_ = 0;
  is_there_ = true;
  while (position_ < path_.size()) Take(path_[position_]);
}

bool Search::Violate(std::string what) {
  result_.violation = std::move(what);
  result_.path = path_;
  return false;
}

bool Search::Enter(uint64_t reached_by) {
  result_.depth = std::max(result_.depth, static_cast<int64_t>(path_.size()));
  if (std::string wrong = system_->Violation(); !wrong.empty()) return Violate(std::move(wrong));
  const uint64_t fingerprint = system_->Fingerprint();
  if (auto [known, is_new] = by_state_.try_emplace(fingerprint, 0); !is_new && options_.merge) {
    by_way_[reached_by] = known->second;
    stack_.back().orders += known->second;
    path_.pop_back();
    is_there_ = false;
    return true;
  }
  if (++result_.states > options_.max_states) return false;
  Frame& frame = stack_.emplace_back();
  frame.fingerprint = fingerprint;
  frame.reached_by = reached_by;
  frame.choices = system_->Choices();
  if (!frame.choices.empty()) return true;
  if (std::string missing = system_->Unfinished(); !missing.empty()) return Violate(std::move(missing));
  ++result_.ends;
  frame.orders = 1;
  return true;
}

bool Search::LookAt(const System::Choice& choice) {
  ++result_.transitions;
  if (auto known = by_way_.find(choice.leads_to); options_.merge && known != by_way_.end()) {
    stack_.back().orders += known->second;
    return true;
  }
  Return();
  path_.push_back(choice.event);
  Take(choice.event);
  return Enter(choice.leads_to);
}

void Search::Leave() {
  const Frame done = std::move(stack_.back());
  stack_.pop_back();
  by_way_[done.reached_by] = by_state_[done.fingerprint] = done.orders;
  if (stack_.empty()) {
    result_.orders = done.orders;
    return;
  }
  stack_.back().orders += done.orders;
  path_.pop_back();
  is_there_ = false;
}

Exploration Search::Run() {
  Return();
  if (!Enter(/*reached_by=*/0)) return std::move(result_);
  while (!stack_.empty()) {
    Frame& last = stack_.back();
    if (last.next == last.choices.size()) {
      Leave();
    } else if (!LookAt(last.choices[last.next++])) {
      return std::move(result_);
    }
  }
  result_.complete = true;
  return std::move(result_);
}

}  // namespace

Exploration Explore(System* system, const ExploreOptions& options) { return Search(system, options).Run(); }

}  // namespace rubato::explorer
