#ifndef RUBATO_CLI_LAUNCH_TESTING_FAKE_TASK_HOST_H_
#define RUBATO_CLI_LAUNCH_TESTING_FAKE_TASK_HOST_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/launch/task_host.h"
#include "common/clock.h"
#include "common/task.h"
#include "gtest/gtest.h"

namespace rubato {

// A TaskHost without processes, in the time of a FakeClock: what happens, and when, is scripted.
//
//   FakeTaskHost host(&clock, 1, 2);
//   host.At(absl::Seconds(3), [&] { host.End(v1::TaskId::SERVER, 0, {.signal = 9}); });
class FakeTaskHost : public TaskHost {
 public:
  // So many servers and workers, and one evaluator. `clock` outlives it.
  FakeTaskHost(FakeClock* clock, uint32_t servers, uint32_t workers) : clock_(clock), began_(clock->Now()) {
    Add(v1::TaskId::COORDINATOR, 1);
    Add(v1::TaskId::SERVER, servers);
    Add(v1::TaskId::WORKER, workers);
    Add(v1::TaskId::EVALUATOR, 1);
    status.set_phase(v1::JobStatus::TRAINING);
  }

  void At(absl::Duration time, std::function<void()> event) { script_.emplace(began_ + time, std::move(event)); }

  void End(v1::TaskId::Role role, uint32_t index, ExitResult result, bool for_good = false) {
    if (running_.erase({role, index}) == 0) return;
    v1::TaskId task;
    task.set_role(role);
    task.set_index(index);
    news_.ended.push_back({task, result, for_good});
  }
  // All that still run.
  void EndAll(ExitResult result) {
    for (const auto& [role, index] : std::set<Key>(running_)) End(role, index, result);
  }
  void Say(const std::string& note) { news_.notes.push_back(note); }
  void Write(const std::string& line) { news_.output.push_back(line); }

  absl::Status Start() override { return absl::OkStatus(); }
  absl::Status StartAgain(const v1::TaskId& task) override {
    calls.push_back("start again " + TaskName(task));
    if (start_again.ok()) running_.insert({task.role(), task.index()});
    return start_again;
  }
  void AwaitEvent(int, absl::Duration timeout) override {
    clock_->Advance(timeout);
    while (!script_.empty() && script_.begin()->first <= clock_->Now()) {
      const std::function<void()> event = std::move(script_.begin()->second);
      script_.erase(script_.begin());
      event();
    }
    // What waits for ever fails instead.
    if (clock_->Now() - began_ < absl::Hours(1)) return;
    ADD_FAILURE() << "the supervisor has not ended within an hour";
    EndAll({.code = 1});
  }
  News Watch() override { return std::exchange(news_, {}); }
  bool AnyLeft() const override { return !running_.empty(); }
  absl::StatusOr<v1::JobStatus> GetStatus(absl::Duration) override {
    if (!Answers()) return absl::UnavailableError("nobody answers");
    return status;
  }
  absl::Status AskToStop(const std::string& reason, absl::Duration) override {
    calls.push_back("ask to stop: " + reason);
    if (!Answers()) return absl::UnavailableError("nobody answers");
    if (on_stop) on_stop();
    return absl::OkStatus();
  }
  void Terminate() override {
    calls.push_back("terminate");
    if (!stubborn) EndAll({.signal = 15});
  }
  void Kill() override {
    calls.push_back("kill");
    EndAll({.signal = 9});
  }
  absl::Status Finish() override { return absl::OkStatus(); }
  std::string Describe(const v1::TaskId& task) const override {
    return task.role() == v1::TaskId::COORDINATOR ? "the coordinator" : TaskName(task);
  }
  std::string LogTail(const v1::TaskId& task) override { return absl::StrCat("; log of ", TaskName(task)); }

  // What was asked for, in order.
  std::vector<std::string> calls;
  // What the coordinator says, unless it is silent.
  v1::JobStatus status;
  bool silent = false;
  // Called when the coordinator is asked to stop. Null: it takes no notice.
  std::function<void()> on_stop;
  // Whether tasks take no notice of SIGTERM.
  bool stubborn = false;
  // What StartAgain returns.
  absl::Status start_again;

 private:
  using Key = std::pair<v1::TaskId::Role, uint32_t>;

  void Add(v1::TaskId::Role role, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) running_.insert({role, i});
  }

  bool Answers() const { return !silent && running_.count({v1::TaskId::COORDINATOR, 0}) > 0; }

  FakeClock* const clock_;
  const absl::Time began_;
  std::multimap<absl::Time, std::function<void()>> script_;
  std::set<Key> running_;
  News news_;
};

}  // namespace rubato

#endif  // RUBATO_CLI_LAUNCH_TESTING_FAKE_TASK_HOST_H_
