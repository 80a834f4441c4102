#include "server/rules/partition.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/mutants.h"
#include "common/status.h"
#include "common/task.h"

namespace rubato::server {
namespace {

// In one row of what is known of a worker: about as many as a request has. With all of the chunks in it, a step that is
// complete would find each worker in a page of its own.
constexpr size_t kChunksOfRow = 16;

using Kind = PartitionRequest::Kind;
using Reply = v1::ExchangeReply;

bool Contains(const std::vector<uint32_t>& chunks, uint32_t chunk) {
  return std::find(chunks.begin(), chunks.end(), chunk) != chunks.end();
}

bool Intersects(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  return std::any_of(a.begin(), a.end(), [&](uint32_t chunk) { return Contains(b, chunk); });
}

// The last of the chunks that `blocks` holds for: as a rule the one that comes further last, too.
template <typename Predicate>
std::optional<uint32_t> LastOf(const std::vector<uint32_t>& chunks, const Predicate& blocks) {
  const auto found = std::find_if(chunks.rbegin(), chunks.rend(), blocks);
  return found == chunks.rend() ? std::nullopt : std::optional(*found);
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
  for (size_t i = 0; i < order_.size(); ++i) {
    const size_t position = i % kChunksOfRow;
    if (position == 0) workers_.emplace_back(std::min(kChunksOfRow, order_.size() - i));
    chunks_.Add(order_[i], ChunkRules(order_[i], staleness_limit, workers_.back(), position));
  }
}

int64_t Partition::highest_begun() const { return highest_begun_; }

absl::Status Partition::CheckChunks(const PartitionRequest& request) const {
  if (request.chunks.empty()) return absl::InvalidArgumentError("chunks: none given; at least one is needed");
  const std::vector<uint32_t>& chunks = request.chunks;
  const bool ascends = std::adjacent_find(chunks.begin(), chunks.end(), std::greater_equal<>()) == chunks.end();
  for (size_t i = 0; i < request.chunks.size(); ++i) {
    if (Find(request.chunks[i]) == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("chunks[", i, "]: chunk ", request.chunks[i], " is not in this partition"));
    }
    if (!ascends && std::count(chunks.begin(), chunks.end(), chunks[i]) > 1) {
      return absl::InvalidArgumentError(absl::StrCat("chunks[", i, "]: chunk ", request.chunks[i], " is named twice"));
    }
  }
  return absl::OkStatus();
}

void Partition::Prefetch(const PartitionRequest& request) const {
  for (uint32_t chunk : request.chunks) Rules(chunk).Prefetch(request.task.index());
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
    Prefetch(request);
    if (!window_.IsMember(request.task) && request.generation <= window_.current().generation()) {
      return Refuse(request, Reply::NOT_A_MEMBER,
                    absl::StrCat(TaskName(request.task), " is not a member of plan ", window_.current().generation()));
    }
    if (absl::Status status = CheckPushes(request); !status.ok()) {
      return Refuse(request, Reply::REFUSED, std::string(status.message()));
    }
    DropSuperseded(request);
  }
  const absl::Time deadline = now + timeout_;
  next_deadline_ = std::min(next_deadline_, deadline);
  Waiting& waiting = waiting_.Add(std::move(request), deadline);
  Changed changed;
  if (!Holds(waiting.request)) TakePushes(waiting, changed);
  if (TryAnswer(waiting, changed)) {
    waiting_.Remove(waiting.request.token);
  } else {
    WatchFor(waiting);
  }
  Wake(std::move(changed));
}

void Partition::WatchFor(Waiting& waiting) {
  const PartitionRequest& request = waiting.request;
  const bool is_snapshot = request.kind == Kind::kSnapshot;
  if (!is_snapshot && !window_.IsMember(request.task)) return;  // For a plan.
  const std::optional<uint32_t> chunk = is_snapshot ? std::nullopt : BlockedOn(request);
  if (chunk.has_value()) {
    waiting_.WatchOne(waiting, *chunk);
  } else {
    waiting_.WatchAll(waiting);
  }
}

std::optional<uint32_t> Partition::BlockedOn(const PartitionRequest& request) const {
  const auto is_pending = [&](uint32_t chunk) { return Rules(chunk).Pending(request.task); };
  if (!request.contributions.empty()) {
    return LastOf(request.chunks, [&](uint32_t chunk) { return cut_.Lacks(chunk); });
  }
  const std::optional<uint32_t> pending = LastOf(request.chunks, is_pending);
  if (request.kind == Kind::kPushPull && pending.has_value()) return pending;
  // Under a quorum a step may be over on any of its chunks, and then it is moved. So it may be where it asks for a step
  // that it has pushed.
  const bool quorum = window_.current().quorum() > 0 || (window_.left_sync() && window_.previous()->quorum() > 0);
  if (quorum || pending.has_value()) return std::nullopt;
  return LastOf(request.chunks, [&](uint32_t chunk) {
    const absl::StatusOr<ChunkRules::Start> start =
        Rules(chunk).AskStart(window_, request.task, request.generation, request.StepToBegin());
    return start.ok() && start->result == ChunkRules::StartResult::kWait;
  });
}

void Partition::DropSuperseded(const PartitionRequest& request) {
  const auto [lowest, highest] = std::minmax_element(request.chunks.begin(), request.chunks.end());
  std::vector<const Waiting*> superseded;
  for (const WaitingRequests::Asked& old : waiting_.Of(request.task.index())) {
    const bool apart = old.highest_chunk < *lowest || *highest < old.lowest_chunk;
    if (apart || !SameTask(old.waiting->request.task, request.task)) continue;
    if (Intersects(old.waiting->request.chunks, request.chunks)) superseded.push_back(old.waiting);
  }
  for (const Waiting* old : superseded) {
    PartitionReply reply = ReplyTo(*old, Reply::WAITING);
    if (PushPending(*old)) reply.push = Reply::PUSH_PENDING;
    reply.message = "a later request for the same chunks has taken its place";
    sink_->Answer(reply);
    waiting_.Remove(old->request.token);
  }
}

void Partition::TakePushes(Waiting& waiting, Changed& changed) {
  PartitionRequest& request = waiting.request;
  if (request.kind != Kind::kPushPull) return;
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
    ChunkRules& rules = Rules(chunk);
    const ChunkRules::Reached before = rules.reached();
    ChunkRules::Push push = rules.TakePush(window_, std::move(contribution));
    // What was dropped of one chunk is told, whatever became of the others.
    const bool tells = push.result != ChunkRules::PushResult::kDuplicate && waiting.push != Reply::PUSH_DROPPED;
    if (tells) waiting.push = Outcome(push.result, finite);
    if (push.update.has_value()) Perform(*std::move(push.update));
    if (rules.reached() != before) changed.push_back(chunk);
  }
  // Gives their memory back, for the next request: this one may wait for long.
  std::vector<Contribution>().swap(request.contributions);
}

void Partition::LogUpdate(const ChunkRules::Update& update) {
  const int64_t version = Rules(update.chunk).version();
  v1::UpdateLogRecord record;
  for (const Contribution& contribution : update.contributions) {
    const PushHeader& push = *contribution.header;
    v1::UpdateRecord& entry = *record.mutable_update();
    entry.Clear();
    entry.set_worker(push.task.index());
    entry.set_incarnation(push.task.incarnation());
    entry.set_generation(push.generation);
    entry.set_step(push.step);
    entry.set_chunk(update.chunk);
    entry.set_base_version(contribution.base_version);
    entry.set_applied_version(version);
    entry.set_examples(contribution.examples);
    entry.set_ineffective(update.ineffective);
    if (push.slice.shard() != 0) *entry.mutable_slice() = push.slice;
    if (const auto crc = sink_->GradientCrc(contribution)) entry.set_gradient_crc32(*crc);
    sink_->Log(record);
  }
}

void Partition::Perform(ChunkRules::Update update) {
  if (!update.ineffective) sink_->Apply(update);
  if (sink_->logs()) LogUpdate(update);
  for (const Contribution& contribution : update.contributions) {
    const PushHeader& push = *contribution.header;
    places_.Note(push.task, push.step, push.slice);
  }
  // Before the next update, so that the values are exactly those of the step.
  for (Waiting* snapshot : std::vector<Waiting*>(waiting_.snapshots())) {
    const bool concerned = Contains(snapshot->request.chunks, update.chunk);
    if (concerned && TrySnapshot(*snapshot)) waiting_.Remove(snapshot->request.token);
  }
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
  if (waiting.push == Reply::PUSH_NONE) return reply;
  reply.applied_to.reserve(waiting.request.chunks.size());
  for (uint32_t chunk : waiting.request.chunks) {
    reply.applied_to.push_back(Rules(chunk).AppliedTo(waiting.request.task, waiting.request.step));
  }
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
  const int64_t step = request.StepToBegin();
  for (uint32_t chunk : request.chunks) {
    ChunkRules& rules = Rules(chunk);
    const ChunkRules::Reached before = rules.reached();
    std::optional<ChunkRules::Update> update = rules.NoteStartRequest(window_, request.task, request.generation, step);
    if (update.has_value()) Perform(*std::move(update));
    if (rules.reached() != before) changed.push_back(chunk);
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
  return true;
}

void Partition::CaptureCut(const std::vector<uint32_t>& chunks) {
  for (uint32_t chunk : chunks) {
    if (!cut_.Lacks(chunk) || !Rules(chunk).IsPlanReached(window_)) continue;
    cut_.Take(chunk);
    sink_->CaptureCut(cut_.cut(), chunk);
  }
}

void Partition::TryAgain(const std::vector<uint64_t>& tokens, Changed& changed) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    const uint64_t token = tokens[i];
    if (i + 1 < tokens.size()) {  // Its memory comes in while this one is tried.
      if (const Waiting* const next = waiting_.Find(tokens[i + 1]); next != nullptr) Prefetch(next->request);
    }
    Waiting* const waiting = waiting_.Find(token);
    if (waiting == nullptr) continue;  // Answered just now.
    if (TryAnswer(*waiting, changed)) {
      waiting_.Remove(token);
    } else {
      WatchFor(*waiting);
    }
  }
}

void Partition::Wake(Changed changed) {
  while (!changed.empty()) {
    // Before what was held for it changes the weights.
    if (cut_.open()) CaptureCut(changed);
    const std::vector<uint64_t> tokens = waiting_.TakeWatchers(changed);
    changed.clear();
    TryAgain(tokens, changed);
  }
}

void Partition::WakeAll() {
  if (cut_.open()) CaptureCut(order_);
  waiting_.ForgetWatches();
  Changed changed;
  TryAgain(waiting_.Tokens(), changed);
  Wake(std::move(changed));
}

int64_t Partition::Announce(uint64_t generation) {
  window_.Announce(generation);
  return highest_begun_;
}

void Partition::Abort(uint64_t generation, absl::Time) {
  if (window_.Abort(generation)) WakeAll();
}

void Partition::Commit(const v1::Plan& plan, absl::Time) {
  const PlanWindow::Change change = window_.Commit(plan);
  if (change == PlanWindow::Change::kNone) return;
  LogPlan(plan);
  places_.OnPlan(plan, change == PlanWindow::Change::kEntered);
  if (change == PlanWindow::Change::kEntered) cut_.EnterPlan(plan, order_);
  for (uint32_t chunk : order_) {
    if (change == PlanWindow::Change::kEntered) Rules(chunk).EnterPlan(window_);
    if (std::optional<ChunkRules::Update> update = Rules(chunk).Amend(window_)) Perform(*std::move(update));
  }
  WakeAll();
}

void Partition::LogPlan(const v1::Plan& plan) {
  if (!sink_->logs()) return;
  v1::UpdateLogRecord record;
  *record.mutable_plan() = plan;
  sink_->Log(record);
}

void Partition::OnTick(absl::Time now) {
  if (now < next_deadline_) return;
  next_deadline_ = absl::InfiniteFuture();
  Awaited awaited;
  for (uint64_t token : waiting_.Tokens()) {
    const Waiting& waiting = *waiting_.Find(token);
    if (now < waiting.deadline) {
      next_deadline_ = std::min(next_deadline_, waiting.deadline);
      continue;
    }
    PartitionReply reply = ReplyTo(waiting, Reply::WAITING);
    if (PushPending(waiting) && !RUBATO_MUTANT(kTimeoutAcknowledges)) reply.push = Reply::PUSH_PENDING;
    if (waiting.request.kind == Kind::kSnapshot) {
      reply.message = absl::StrCat("waits for SYNC step ", waiting.request.step);
    } else {
      reply.waiting_for = WaitsFor(waiting, &awaited);
      reply.message = absl::StrCat(
          "waits for ", DescribeWait(reply.waiting_for, false),
          Holds(waiting.request) ? absl::StrCat(", whose steps before go into checkpoint ", cut_.cut().name()) : "");
    }
    sink_->Answer(reply);
    waiting_.Remove(token);
  }
}

void Partition::Forget(uint64_t token) { waiting_.Remove(token); }

void Partition::AppendState(std::string* state) const {
  window_.AppendState(state);
  cut_.AppendState(state);
  places_.AppendState(state);
  for (uint32_t chunk : order_) Rules(chunk).AppendState(state);
  absl::StrAppend(state, highest_begun_, ";");
  for (uint64_t token : waiting_.Tokens()) {
    const Waiting& waiting = *waiting_.Find(token);
    const PartitionRequest& request = waiting.request;
    absl::StrAppend(state, "waits ", static_cast<int>(request.kind), ",", TaskName(request.task), "#",
                    request.task.incarnation(), ",", request.generation, ",", request.step, ",",
                    absl::StrJoin(request.chunks, "+"), ",", request.contributions.size(), ",", waiting.push, ",",
                    absl::StrJoin(waiting.to_capture, "+"), ";");
  }
}

}  // namespace rubato::server
