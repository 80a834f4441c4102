// Messages of tasks, requests of operators and time, in any order, to the coordinator's rules: they say at most once
// how each request ended, nothing after the job's end, and can always go on from the journal that they wrote.
//
// Input: CoordinatorEvents.
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/rules/coordinator_core.h"
#include "coordinator/testing/small_job.h"
#include "tests/fuzz/events.pb.h"
#include "tests/fuzz/fuzz_target.h"

namespace rubato::coordinator {
namespace {

constexpr int kEventsMax = 128;
// Servers answer at once what they are told, which may make the coordinator tell them more.
constexpr int kAnswersMax = 256;
constexpr int64_t kStarted = 10;
constexpr uint32_t kMillisecondsMax = 20000;

class Run {
 public:
  Run() { Create(); }

  // False when there is no coordinator any more.
  bool Do(const v1::CoordinatorEvent& event) {
    switch (event.event_case()) {
      case v1::CoordinatorEvent::kMessage:
        Perform(core_->OnMessage(event.message(), "ipv4:10.0.0.9:555", now_));
        break;
      case v1::CoordinatorEvent::kDisconnect:
        Perform(core_->OnDisconnect(event.disconnect(), now_));
        break;
      case v1::CoordinatorEvent::kMilliseconds:
        now_ += absl::Milliseconds(event.milliseconds() % kMillisecondsMax);
        Perform(core_->OnTick(now_));
        break;
      case v1::CoordinatorEvent::kSwitchMode:
        Perform(core_->RequestSwitch(event.switch_mode(), NewTicket(), now_));
        break;
      case v1::CoordinatorEvent::kStop:
        Perform(core_->RequestStop(event.stop(), now_));
        break;
      case v1::CoordinatorEvent::kCheckpoint:
        Perform(core_->RequestCheckpoint(NewTicket(), now_));
        break;
      case v1::CoordinatorEvent::kTrace:
        Trace(event.trace());
        break;
      case v1::CoordinatorEvent::kRestart:
        open_.clear();
        Restart();
        break;
      case v1::CoordinatorEvent::kServersAnswer:
        servers_answer_ = event.servers_answer();
        break;
      case v1::CoordinatorEvent::EVENT_NOT_SET:
        break;
    }
    Answer();
    if (core_ == nullptr) return false;
    Look();
    return true;
  }

 private:
  uint64_t NewTicket() {
    open_.insert(++last_ticket_);
    return last_ticket_;
  }

  void Create() {
    absl::StatusOr<std::unique_ptr<CoordinatorCore>> core =
        CoordinatorCore::Create({SmallJob(), kConfigFingerprint, 0x1234, now_, false, counts_, "boot"});
    RUBATO_FUZZ_CHECK(core.ok(), core.status());
    core_ = *std::move(core);
  }

  // The core that comes after this one, which was told to make room or whose process has ended.
  void Restart() {
    unanswered_.clear();
    if (core_ != nullptr) counts_ = core_->counts();
    Create();
    absl::StatusOr<Actions> actions = core_->Recover(journal_, now_);
    if (!actions.ok()) {
      // A job that has ended does not begin again; whatever else was written can be read.
      RUBATO_FUZZ_CHECK(ended_ && absl::IsFailedPrecondition(actions.status()), actions.status());
      core_ = nullptr;
      return;
    }
    Perform(*std::move(actions));
  }

  void Trace(const v1::TraceJobRequest& request) {
    v1::TraceJobReply reply;
    absl::StatusOr<Actions> actions = core_->RequestTrace(request, &reply, now_);
    if (actions.ok()) Perform(*std::move(actions));
  }

  void Close(uint64_t ticket) { RUBATO_FUZZ_CHECK(open_.erase(ticket) == 1, ticket); }

  void Perform(Actions actions) {
    for (size_t i = 0; i < actions.size(); ++i) {
      RUBATO_FUZZ_CHECK(core_ != nullptr, "an action after the last one");
      Action& action = actions[i];
      if (const auto* send = std::get_if<SendDirective>(&action)) {
        if (send->task.role() == v1::TaskId::SERVER) unanswered_.emplace_back(send->task, send->directive);
      } else if (const auto* journal = std::get_if<AppendJournal>(&action)) {
        const v1::JobStatus::Phase phase = journal->record.phase().phase();
        ended_ = ended_ || phase == v1::JobStatus::DONE || phase == v1::JobStatus::FAILED;
        journal_.push_back(journal->record);
      } else if (const auto* answer = std::get_if<AnswerSwitch>(&action)) {
        Close(answer->ticket);
      } else if (const auto* written = std::get_if<AnswerCheckpoint>(&action)) {
        Close(written->ticket);
      } else if (const auto* line = std::get_if<AppendMetrics>(&action)) {
        RUBATO_FUZZ_CHECK(line->line.line_case() != v1::RunRecordLine::LINE_NOT_SET, "an empty line of the record");
      } else if (std::holds_alternative<RestartCore>(action)) {
        RUBATO_FUZZ_CHECK(i + 1 == actions.size(), "an action after the last one");
        RUBATO_FUZZ_CHECK(open_.empty(), "an operator waits for a core that is gone");
        Restart();
      } else if (std::holds_alternative<Finish>(action)) {
        RUBATO_FUZZ_CHECK(i + 1 == actions.size(), "an action after the last one");
        RUBATO_FUZZ_CHECK(open_.empty(), "an operator waits for a coordinator that is gone");
        core_ = nullptr;
      }
    }
  }

  // What servers say to what they were told.
  void Answer() {
    if (!servers_answer_) unanswered_.clear();
    for (int left = kAnswersMax; left > 0 && core_ != nullptr && !unanswered_.empty(); --left) {
      const auto [server, directive] = unanswered_.front();
      unanswered_.pop_front();
      std::optional<v1::TaskMessage> message = ServerAnswer(directive, kStarted);
      if (!message.has_value()) continue;
      *message->mutable_task() = server;
      Perform(core_->OnMessage(*message, "ipv4:10.0.0.9:555", now_));
    }
  }

  // What a person who looks sees.
  void Look() {
    const v1::JobStatus status = core_->Status(now_);
    RUBATO_FUZZ_CHECK(status.IsInitialized() && status.phase() == core_->phase(), status.phase());
    // None is shown while the job goes back.
    const uint64_t generation = status.plan().generation();
    RUBATO_FUZZ_CHECK(generation == 0 || generation >= generation_, generation);
    generation_ = std::max(generation_, generation);
    core_->WaitingFor();
  }

  absl::Time now_ = absl::FromUnixSeconds(1000000);
  std::unique_ptr<CoordinatorCore> core_;
  v1::JobCounts counts_;
  std::vector<v1::JournalRecord> journal_;
  // The journal says that the job is over.
  bool ended_ = false;
  uint64_t generation_ = 0;
  uint64_t last_ticket_ = 0;
  std::set<uint64_t> open_;  // Tickets that are not answered.
  bool servers_answer_ = true;
  std::deque<std::pair<v1::TaskId, v1::Directive>> unanswered_;
};

}  // namespace
}  // namespace rubato::coordinator

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Texts are not UTF-8 most of the time.
  static google::protobuf::LogHandler* const kSilent = google::protobuf::SetLogHandler(nullptr);
  static_cast<void>(kSilent);
  rubato::v1::CoordinatorEvents input;
  if (!input.ParseFromArray(data, static_cast<int>(size))) return 0;
  rubato::coordinator::Run run;
  const int count = std::min(input.events_size(), rubato::coordinator::kEventsMax);
  for (int i = 0; i < count && run.Do(input.events(i)); ++i) {
  }
  return 0;
}
