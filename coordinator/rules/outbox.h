#ifndef RUBATO_COORDINATOR_RULES_OUTBOX_H_
#define RUBATO_COORDINATOR_RULES_OUTBOX_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "coordinator/rules/action.h"
#include "coordinator/rules/membership.h"

namespace rubato::coordinator {

// The actions that the parts of the coordinator ask for while one event is handled, in order.
class Outbox {
 public:
  // `membership` outlives the outbox.
  explicit Outbox(const Membership* membership) : membership_(membership) {}

  void Send(const v1::TaskId& task, v1::Directive directive) {
    actions_.push_back(SendDirective{task, std::move(directive)});
  }
  // To all of a role that are alive.
  void SendToAll(v1::TaskId::Role role, const v1::Directive& directive) {
    for (const Member* member : membership_->Alive(role)) Send(member->id, directive);
  }
  void SendStop(const v1::TaskId& task, const v1::Stop& stop) {
    v1::Directive directive;
    *directive.mutable_stop() = stop;
    Send(task, std::move(directive));
  }
  // Stop for one task, while the job goes on.
  void SendRefusal(const v1::TaskId& task, absl::string_view why) {
    v1::Stop stop;
    stop.set_kind(v1::Stop::FAILED);
    stop.set_error(why.data(), why.size());
    SendStop(task, stop);
  }
  void Journal(v1::JournalRecord record, bool durable) {
    actions_.push_back(AppendJournal{std::move(record), durable});
  }
  void Metrics(v1::RunRecordLine line) { actions_.push_back(AppendMetrics{std::move(line)}); }
  void Log(char severity, std::string text) { actions_.push_back(LogLine{severity, std::move(text)}); }
  void Add(Action action) { actions_.push_back(std::move(action)); }

  Actions Take() { return std::exchange(actions_, {}); }

 private:
  const Membership* const membership_;
  Actions actions_;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_OUTBOX_H_
