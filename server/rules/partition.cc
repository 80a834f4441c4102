#include "server/rules/partition.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/mutants.h"
#include "common/status.h"
#include "common/task.h"

namespace rubato::server {
namespace {

using Kind = PartitionRequest::Kind;
using Reply = v1::ExchangeReply;

bool Contains(const std::vector<uint32_t>& chunks, uint32_t chunk) {
  return std::find(chunks.begin(), chunks.end(), chunk) != chunks.end();
}

bool Intersects(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  return std::any_of(a.begin(), a.end(), [&](uint32_t chunk) { return Contains(b, chunk); });
}

Reply::PushOutcome Outcome(ChunkRules::PushResult result, bool finite) {
  switch (result) {
    case ChunkRules::PushResult::kDuplicate:
      return Reply::PUSH_DUPLICATE;
    case ChunkRules::PushResult::kDropped:
      return Reply::PUSH_DROPPED;
    case ChunkRules::PushResult::kApplied:
    case ChunkRules::PushResult::kPending:
      break;
  }
  return finite ? Reply::PUSH_APPLIED : Reply::PUSH_NON_FINITE;
}

}  // namespace

Partition::Partition(const std::vector<uint32_t>& chunks, absl::Duration timeout, PartitionSink* sink,
                     int64_t staleness_limit)
    : timeout_(timeout), sink_(sink), order_(chunks) {
  std::sort(order_.begin(), order_.end());
  for (uint32_t chunk : order_) chunks_.emplace(chunk, ChunkRules(chunk, staleness_limit));
}

const ChunkRules* Partition::Find(uint32_t chunk) const {
  auto it = chunks_.find(chunk);
  return it == chunks_.end() ? nullptr : &it->second;
}

int64_t Partition::highest_begun() const { return highest_begun_; }

absl::Status Partition::CheckChunks(const PartitionRequest& request) const {
  if (request.chunks.empty()) return absl::InvalidArgumentError("chunks: none given; at least one is needed");
  for (size_t i = 0; i < request.chunks.size(); ++i) {
    if (Find(request.chunks[i]) == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("chunks[", i, "]: chunk ", request.chunks[i], " is not in this partition"));
    }
    if (std::count(request.chunks.begin(), request.chunks.end(), request.chunks[i]) > 1) {
      return absl::InvalidArgumentError(absl::StrCat("chunks[", i, "]: chunk ", request.chunks[i], " is named twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status Partition::CheckPushes(const PartitionRequest& request) {
  for (size_t i = 0; i < request.contributions.size(); ++i) {
    // The plan of the push must be known; a start under a plan yet to come may wait for it.
    RUBATO_RETURN_IF_ERROR(Rules(request.chunks[i]).CheckPush(window_, request.contributions[i]));
  }
  return absl::OkStatus();
}

void Partition::Refuse(const PartitionRequest& request, Reply::Outcome outcome, std::string message) {
  PartitionReply reply;
  reply.token = request.token;
  reply.outcome = outcome;
  reply.message = std::move(message);
  sink_->Answer(reply);
}

void Partition::OnRequest(PartitionRequest request, absl::Time now) {
  if (absl::Status status = CheckChunks(request); !status.ok()) {
    return Refuse(request, Reply::REFUSED, std::string(status.message()));
  }
  if (request.kind != Kind::kSnapshot) {
    if (!window_.IsMember(request.task) && request.generation <= window_.current().generation()) {
      return Refuse(request, Reply::NOT_A_MEMBER,
                    absl::StrCat(TaskName(request.task), " is not a member of plan ", window_.current().generation()));
    }
    if (absl::Status status = CheckPushes(request); !status.ok()) {
      return Refuse(request, Reply::REFUSED, std::string(status.message()));
    }
    DropSuperseded(request);
  }
  const uint64_t token = request.token;
  Waiting& waiting = waiting_[token];
  waiting.request = std::move(request);
  waiting.deadline = now + timeout_;
  if (waiting.request.kind == Kind::kSnapshot) waiting.to_capture = waiting.request.chunks;
  Changed changed;
  if (!Holds(waiting.request)) TakePushes(waiting, changed);
  if (TryAnswer(waiting, changed)) waiting_.erase(token);
  Wake(std::move(changed));
}

void Partition::DropSuperseded(const PartitionRequest& request) {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const PartitionRequest& old = it->second.request;
    bool superseded =
        old.kind != Kind::kSnapshot && SameTask(old.task, request.task) && Intersects(old.chunks, request.chunks);
    if (!superseded) {
      ++it;
      continue;
    }
    PartitionReply reply = ReplyTo(it->second, Reply::WAITING);
    if (PushPending(it->second)) reply.push = Reply::PUSH_PENDING;
    reply.message = "a later request for the same chunks has taken its place";
    sink_->Answer(reply);
    it = waiting_.erase(it);
  }
}

void Partition::TakePushes(Waiting& waiting, Changed& changed) {
  PartitionRequest& request = waiting.request;
  if (request.kind != Kind::kPushPull) return;
  waiting.applied_to.assign(request.chunks.size(), -1);
  waiting.push = Reply::PUSH_DUPLICATE;
  for (size_t i = 0; i < request.chunks.size(); ++i) {
    const uint32_t chunk = request.chunks[i];
    Contribution& contribution = request.contributions[i];
    // Chunk by chunk: what was looked at is still in the cache when it is applied.
    const bool finite = sink_->IsFinite(chunk, contribution);
    if (!finite) {
      contribution.examples = 0;
      contribution.gradient = nullptr;
    }
    ChunkRules::Push push = Rules(chunk).TakePush(window_, std::move(contribution));
    // What was dropped of one chunk is told, whatever became of the others.
    const bool tells = push.result != ChunkRules::PushResult::kDuplicate && waiting.push != Reply::PUSH_DROPPED;
    if (tells) waiting.push = Outcome(push.result, finite);
    if (push.update.has_value()) Perform(*std::move(push.update), changed);
  }
  request.contributions.clear();
}

void Partition::Perform(ChunkRules::Update update, Changed& changed) {
  const ChunkRules& rules = Rules(update.chunk);
  if (!update.ineffective) sink_->Apply(update);
  for (const Contribution& contribution : update.contributions) {
    v1::UpdateLogRecord record;
    v1::UpdateRecord& entry = *record.mutable_update();
    entry.set_worker(contribution.task.index());
    entry.set_incarnation(contribution.task.incarnation());
    entry.set_generation(contribution.generation);
    entry.set_step(contribution.step);
    entry.set_chunk(update.chunk);
    entry.set_base_version(contribution.base_version);
    entry.set_applied_version(rules.version());
    entry.set_examples(contribution.examples);
    entry.set_ineffective(update.ineffective);
    if (contribution.slice.shard() != 0) *entry.mutable_slice() = contribution.slice;
    if (const auto crc = sink_->GradientCrc(contribution)) entry.set_gradient_crc32(*crc);
    sink_->Log(record);
    places_.Note(contribution.task, contribution.step, contribution.slice);
  }
  for (auto& [token, waiting] : waiting_) {
    const std::vector<uint32_t>& chunks = waiting.request.chunks;
    auto at = std::find(chunks.begin(), chunks.end(), update.chunk);
    if (at == chunks.end() || waiting.request.token == 0) continue;  // Not concerned, or answered just now.
    if (waiting.request.kind == Kind::kSnapshot) {
      // Before the next update, so that the values are exactly those of the step.
      TrySnapshot(waiting);
      continue;
    }
    for (const Contribution& contribution : update.contributions) {
      if (!waiting.applied_to.empty() && SameTask(contribution.task, waiting.request.task)) {
        waiting.applied_to[at - chunks.begin()] = update.from_version;
      }
    }
  }
  changed.push_back(update.chunk);
}

bool Partition::PushPending(const Waiting& waiting) const {
  if (waiting.request.kind != Kind::kPushPull) return false;
  return !waiting.request.contributions.empty() ||
         std::any_of(waiting.request.chunks.begin(), waiting.request.chunks.end(),
                     [&](uint32_t chunk) { return Rules(chunk).Pending(waiting.request.task); });
}

PartitionReply Partition::ReplyTo(const Waiting& waiting, Reply::Outcome outcome) const {
  PartitionReply reply;
  reply.token = waiting.request.token;
  reply.outcome = outcome;
  reply.push = waiting.push;
  reply.applied_to = waiting.applied_to;
  return reply;
}

bool Partition::TryAnswer(Waiting& waiting, Changed& changed) {
  const PartitionRequest& request = waiting.request;
  if (request.kind == Kind::kSnapshot) return TrySnapshot(waiting);
  if (!window_.IsMember(request.task)) {
    if (request.generation > window_.current().generation()) return false;
    Refuse(request, Reply::NOT_A_MEMBER,
           absl::StrCat(TaskName(request.task), " is not a member of plan ", window_.current().generation()));
    return true;
  }
  if (!request.contributions.empty()) {  // Held until now.
    if (Holds(request) && !RUBATO_MUTANT(kHeldPushTaken)) return false;
    if (absl::Status status = CheckPushes(request); !status.ok()) {
      Refuse(request, Reply::REFUSED, std::string(status.message()));
      return true;
    }
    TakePushes(waiting, changed);
  }
  if (PushPending(waiting)) return false;
  const int64_t step = request.kind == Kind::kPull ? request.step : request.step + 1;
  for (uint32_t chunk : request.chunks) {
    ChunkRules::StartRequest start_request =
        Rules(chunk).NoteStartRequest(window_, request.task, request.generation, step);
    if (start_request.clock_moved) changed.push_back(chunk);
    if (start_request.update.has_value()) Perform(*std::move(start_request.update), changed);
  }
  bool all_open = true;
  int64_t moved_to = -1;
  for (uint32_t chunk : request.chunks) {
    absl::StatusOr<ChunkRules::Start> start = Rules(chunk).AskStart(window_, request.task, request.generation, step);
    if (!start.ok()) {
      PartitionReply reply = ReplyTo(waiting, Reply::REFUSED);
      reply.message = std::string(start.status().message());
      sink_->Answer(reply);
      return true;
    }
    if (start->result == ChunkRules::StartResult::kMoved) moved_to = std::max(moved_to, start->next_step);
    all_open = all_open && start->result == ChunkRules::StartResult::kOpen;
  }
  if (moved_to >= 0) {
    PartitionReply reply = ReplyTo(waiting, Reply::MOVED);
    reply.plan = window_.current();
    reply.next_step = moved_to;
    sink_->Answer(reply);
    return true;
  }
  if (!all_open) return false;
  for (uint32_t chunk : request.chunks) Rules(chunk).Begin(request.task, step);
  highest_begun_ = std::max(highest_begun_, step);
  PartitionReply reply = ReplyTo(waiting, Reply::OK);
  reply.chunks = request.chunks;
  reply.begun_step = step;
  sink_->Answer(reply);
  return true;
}

bool Partition::TrySnapshot(Waiting& waiting) {
  const int64_t step = waiting.request.step;
  bool sync = step >= 0 &&
              (window_.current().mode() == v1::SYNC || (window_.left_sync() && step < window_.current().first_step()));
  int64_t furthest = -1;
  for (auto it = waiting.to_capture.begin(); it != waiting.to_capture.end();) {
    const ChunkRules& rules = Rules(*it);
    furthest = std::max(furthest, rules.next_sync_step());
    if (sync && !rules.StartsWith(window_, step)) {
      ++it;
      continue;
    }
    sink_->Capture(waiting.request.token, *it);
    it = waiting.to_capture.erase(it);
  }
  if (!waiting.to_capture.empty() && furthest <= step) return false;
  PartitionReply reply = ReplyTo(waiting, waiting.to_capture.empty() ? Reply::OK : Reply::LATE);
  if (reply.outcome == Reply::OK) reply.chunks = waiting.request.chunks;
  reply.next_step = furthest + 1;
  sink_->Answer(reply);
  waiting.to_capture.clear();
  waiting.request.token = 0;  // Answered; Wake removes it.
  return true;
}

void Partition::CaptureCut(const std::vector<uint32_t>& chunks) {
  for (uint32_t chunk : chunks) {
    if (!cut_.Lacks(chunk) || !Rules(chunk).IsPlanReached(window_)) continue;
    cut_.Take(chunk);
    sink_->CaptureCut(cut_.cut(), chunk);
  }
}

void Partition::Wake(Changed changed) {
  while (!changed.empty()) {
    Changed next;
    // Before what was held for it changes the weights.
    if (cut_.open()) CaptureCut(changed);
    for (auto it = waiting_.begin(); it != waiting_.end();) {
      bool answered = it->second.request.token == 0 ||
                      (Intersects(it->second.request.chunks, changed) && TryAnswer(it->second, next));
      it = answered ? waiting_.erase(it) : std::next(it);
    }
    changed = std::move(next);
  }
}

int64_t Partition::Announce(uint64_t generation) {
  window_.Announce(generation);
  return highest_begun_;
}

void Partition::Abort(uint64_t generation, absl::Time) {
  if (window_.Abort(generation)) Wake(order_);
}

void Partition::Commit(const v1::Plan& plan, absl::Time) {
  const PlanWindow::Change change = window_.Commit(plan);
  if (change == PlanWindow::Change::kNone) return;
  LogPlan(plan);
  places_.OnPlan(plan, change == PlanWindow::Change::kEntered);
  Changed changed = order_;
  if (change == PlanWindow::Change::kEntered) cut_.EnterPlan(plan, order_);
  for (uint32_t chunk : order_) {
    if (change == PlanWindow::Change::kEntered) Rules(chunk).EnterPlan(window_);
    if (std::optional<ChunkRules::Update> update = Rules(chunk).Amend(window_)) Perform(*std::move(update), changed);
  }
  Wake(std::move(changed));
}

void Partition::LogPlan(const v1::Plan& plan) {
  v1::UpdateLogRecord record;
  *record.mutable_plan() = plan;
  sink_->Log(record);
}

std::vector<v1::TaskId> Partition::WaitsFor(const Waiting& waiting) const {
  const PartitionRequest& request = waiting.request;
  std::vector<v1::TaskId> tasks;
  if (request.kind == Kind::kSnapshot) return tasks;
  const bool held = Holds(request);
  for (uint32_t chunk : request.chunks) {
    for (const v1::TaskId& task : WaitsForOn(chunk, request, held)) {
      bool known = std::any_of(tasks.begin(), tasks.end(), [&](const v1::TaskId& t) { return SameTask(t, task); });
      if (!known) tasks.push_back(task);
    }
  }
  return tasks;
}

std::vector<v1::TaskId> Partition::WaitsForOn(uint32_t chunk, const PartitionRequest& request, bool held) const {
  const ChunkRules& rules = Rules(chunk);
  if (held) return cut_.Lacks(chunk) ? rules.AwaitedByPlan(window_) : std::vector<v1::TaskId>();
  if (rules.Pending(request.task)) return rules.Awaited(window_);
  const int64_t step = request.kind == Kind::kPull ? request.step : request.step + 1;
  absl::StatusOr<ChunkRules::Start> start = rules.AskStart(window_, request.task, request.generation, step);
  return start.ok() ? std::move(start->waiting_for) : std::vector<v1::TaskId>();
}

void Partition::OnTick(absl::Time now) {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    Waiting& waiting = it->second;
    if (now < waiting.deadline) {
      ++it;
      continue;
    }
    PartitionReply reply = ReplyTo(waiting, Reply::WAITING);
    if (PushPending(waiting) && !RUBATO_MUTANT(kTimeoutAcknowledges)) reply.push = Reply::PUSH_PENDING;
    if (waiting.request.kind == Kind::kSnapshot) {
      reply.message = absl::StrCat("waits for SYNC step ", waiting.request.step);
    } else {
      reply.waiting_for = WaitsFor(waiting);
      reply.message = absl::StrCat(
          "waits for ", DescribeWait(reply.waiting_for, false),
          Holds(waiting.request) ? absl::StrCat(", whose steps before go into checkpoint ", cut_.cut().name()) : "");
    }
    sink_->Answer(reply);
    it = waiting_.erase(it);
  }
}

void Partition::Forget(uint64_t token) { waiting_.erase(token); }

void Partition::Describe(v1::ServerProgress* progress) const {
  for (const v1::TaskId& member : window_.current().members()) {
    int64_t clock = -1;
    for (uint32_t chunk : order_) {
      const StepGate::Member* state = Rules(chunk).FindMember(member);
      if (state != nullptr) clock = clock < 0 ? state->clock : std::min(clock, state->clock);
    }
    v1::MemberClock* entry = progress->add_clocks();
    entry->set_worker(member.index());
    entry->set_clock(clock);
  }
  progress->set_highest_started_step(std::max(progress->highest_started_step(), highest_begun_));
}

std::vector<HeldStart> Partition::HeldStarts() const {
  std::vector<HeldStart> starts;
  for (const auto& [token, waiting] : waiting_) {
    const PartitionRequest& request = waiting.request;
    if (request.kind == Kind::kSnapshot) continue;
    HeldStart& start = starts.emplace_back();
    start.worker = request.task.index();
    start.step = request.kind == Kind::kPull ? request.step : request.step + 1;
    start.waiting_for = WaitsFor(waiting);
    start.waits_for_coordinator = start.waiting_for.empty();
  }
  return starts;
}

void Partition::AppendState(std::string* state) const {
  window_.AppendState(state);
  cut_.AppendState(state);
  places_.AppendState(state);
  for (uint32_t chunk : order_) Rules(chunk).AppendState(state);
  absl::StrAppend(state, highest_begun_, ";");
  for (const auto& [token, waiting] : waiting_) {
    const PartitionRequest& request = waiting.request;
    absl::StrAppend(state, "waits ", static_cast<int>(request.kind), ",", TaskName(request.task), "#",
                    request.task.incarnation(), ",", request.generation, ",", request.step, ",",
                    absl::StrJoin(request.chunks, "+"), ",", request.contributions.size(), ",", waiting.push, ",",
                    absl::StrJoin(waiting.to_capture, "+"), ";");
  }
}

}  // namespace rubato::server
