#include "coordinator/worker_talk.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace rubato::coordinator {
namespace {

v1::GetValueReply ReplyOf(const std::string& value) {
  v1::GetValueReply reply;
  reply.set_value(value);
  return reply;
}

// Takes those for whom `over` holds out of the list.
template <class Waiting, class Over>
std::list<Waiting> TakeIf(std::list<Waiting>* list, const Over& over) {
  std::list<Waiting> taken;
  for (auto it = list->begin(); it != list->end();) {
    auto next = std::next(it);
    if (over(*it)) taken.splice(taken.end(), *list, it);
    it = next;
  }
  return taken;
}

}  // namespace

void WorkerTalk::Restore(const std::vector<v1::JournalRecord>& records) {
  for (const v1::JournalRecord& record : records) {
    if (record.has_value()) values_.Apply(record.value());
    if (record.has_barrier()) barriers_.Pass(record.barrier());
  }
}

void WorkerTalk::Put(const v1::PutValueRequest& request, const Done& done) {
  absl::StatusOr<v1::JournalValue> change = values_.Check(request);
  if (!change.ok()) return done(change.status());
  v1::JournalRecord record;
  *record.mutable_value() = *std::move(change);
  if (absl::Status appended = append_(record); !appended.ok()) return done(appended);
  values_.Apply(record.value());
  done(absl::OkStatus());
  AnswerGets(request.key());
}

void WorkerTalk::AnswerGets(const std::string& key) {
  const std::string* value = values_.Find(key);
  if (value == nullptr) return;
  const v1::GetValueReply reply = ReplyOf(*value);
  for (WaitingGet& get : TakeIf(&gets_, [&](const WaitingGet& waiting) { return waiting.key == key; })) {
    get.done(reply);
  }
}

void WorkerTalk::Get(const v1::GetValueRequest& request, absl::Time now, absl::Time deadline, ValueDone done) {
  if (absl::Status key = CheckKey(request.key()); !key.ok()) return done(key);
  if (const std::string* value = values_.Find(request.key())) return done(ReplyOf(*value));
  gets_.push_back({request.key(), deadline, std::move(done)});
  if (deadline <= now) Tick(now);
}

void WorkerTalk::Arrive(const v1::BarrierRequest& request, absl::Time deadline, Done done) {
  const absl::StatusOr<Barriers::Answer> answer = barriers_.Arrive(request);
  if (!answer.ok()) return done(answer.status());
  switch (*answer) {
    case Barriers::Answer::kPassed:
      return done(absl::OkStatus());
    case Barriers::Answer::kWaits:
      workers_.push_back({request, deadline, std::move(done)});
      return;
    case Barriers::Answer::kOpens:
      break;
  }
  v1::JournalRecord record;
  record.mutable_barrier()->set_name(request.name());
  record.mutable_barrier()->set_round(request.round());
  if (absl::Status appended = append_(record); !appended.ok()) return done(appended);
  barriers_.Pass(record.barrier());
  done(absl::OkStatus());
  OpenBarriers(request.name());
}

void WorkerTalk::OpenBarriers(const std::string& name) {
  const auto passes = [&](const WaitingWorker& worker) {
    return worker.request.name() == name && barriers_.Passed(name, worker.request.round());
  };
  for (WaitingWorker& worker : TakeIf(&workers_, passes)) worker.done(absl::OkStatus());
}

void WorkerTalk::Tick(absl::Time now) {
  for (WaitingGet& get : TakeIf(&gets_, [&](const WaitingGet& waiting) { return waiting.deadline <= now; })) {
    get.done(absl::NotFoundError(absl::StrCat("nobody has put ", get.key)));
  }
  for (WaitingWorker& worker :
       TakeIf(&workers_, [&](const WaitingWorker& waiting) { return waiting.deadline <= now; })) {
    const v1::BarrierRequest& request = worker.request;
    worker.done(absl::DeadlineExceededError(absl::StrCat("barrier ", request.name(), " waits for ", request.count(),
                                                         " workers; here are ",
                                                         barriers_.WhoCame(request.name(), request.round()))));
  }
}

void WorkerTalk::End(const absl::Status& why) {
  for (WaitingGet& get : std::exchange(gets_, {})) get.done(why);
  for (WaitingWorker& worker : std::exchange(workers_, {})) worker.done(why);
}

}  // namespace rubato::coordinator
