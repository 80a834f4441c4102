// What a partition says of its members and of those who wait. It changes nothing.

#include <algorithm>
#include <cstddef>
#include <limits>

#include "common/task.h"
#include "server/rules/partition.h"

namespace rubato::server {
namespace {

// Descriptions name no more than that: so many requests, so many of one worker, and whom so many chunks of a request
// wait for.
constexpr size_t kMostHeld = 64;
constexpr size_t kMostHeldOfWorker = 4;
constexpr int kMostLooks = 4;

}  // namespace

std::vector<v1::TaskId> Partition::WaitsFor(const Waiting& waiting, Awaited* awaited) const {
  const PartitionRequest& request = waiting.request;
  std::vector<v1::TaskId> tasks;
  if (request.kind == PartitionRequest::Kind::kSnapshot) return tasks;
  const bool held = Holds(request);
  int looks = kMostLooks;
  for (uint32_t chunk : request.chunks) {
    const std::vector<v1::TaskId> others = WaitsForOn(chunk, request, held, awaited);
    for (const v1::TaskId& task : others) {
      bool known = std::any_of(tasks.begin(), tasks.end(), [&](const v1::TaskId& t) { return SameTask(t, task); });
      if (!known) tasks.push_back(task);
    }
    if (tasks.size() > kMostNamed || (!others.empty() && --looks == 0)) break;
  }
  return tasks;
}

std::vector<v1::TaskId> Partition::WaitsForOn(uint32_t chunk, const PartitionRequest& request, bool held,
                                              Awaited* awaited) const {
  // One more than are named, so that it is seen that there are others.
  constexpr size_t kMost = kMostNamed + 1;
  const ChunkRules& rules = Rules(chunk);
  if (held) return cut_.Lacks(chunk) ? rules.AwaitedByPlan(window_, kMost) : std::vector<v1::TaskId>();
  ChunkRules::Start waits = {.result = ChunkRules::StartResult::kWait, .wait = ChunkRules::Wait::kContributions};
  if (!rules.Pending(request.task)) {
    const absl::StatusOr<ChunkRules::Start> start =
        rules.AskStart(window_, request.task, request.generation, request.StepToBegin());
    if (!start.ok() || start->result != ChunkRules::StartResult::kWait) return {};
    waits = *start;
  }
  if (waits.wait != ChunkRules::Wait::kContributions) return rules.WaitingFor(window_, waits, kMost);
  const auto [known, is_new] = awaited->try_emplace(chunk);
  if (is_new) known->second = rules.Awaited(window_, kMost);
  return known->second;
}

void Partition::Describe(v1::ServerProgress* progress) const {
  const v1::Plan& plan = window_.current();
  std::vector<int64_t> lowest(plan.members_size(), order_.empty() ? -1 : std::numeric_limits<int64_t>::max());
  for (const WorkersOnChunks& workers : workers_) {
    for (int i = 0; i < plan.members_size(); ++i) {
      for (int64_t clock : workers.clocks->Row(plan.members(i).index())) lowest[i] = std::min(lowest[i], clock);
    }
  }
  for (int i = 0; i < plan.members_size(); ++i) {
    v1::MemberClock* entry = progress->add_clocks();
    entry->set_worker(plan.members(i).index());
    entry->set_clock(lowest[i]);
  }
  progress->set_highest_started_step(std::max(progress->highest_started_step(), highest_begun_));
}

std::vector<HeldStart> Partition::HeldStarts() const {
  std::vector<HeldStart> starts;
  Awaited awaited;
  for (uint32_t worker : waiting_.Workers()) {
    if (starts.size() == kMostHeld) break;
    // With the same chunks of every worker, few of them have to be looked at.
    std::vector<WaitingRequests::Asked> requests = waiting_.Of(worker);
    const size_t told = std::min({requests.size(), kMostHeldOfWorker, kMostHeld - starts.size()});
    std::partial_sort(requests.begin(), requests.begin() + static_cast<std::ptrdiff_t>(told), requests.end(),
                      [](const WaitingRequests::Asked& a, const WaitingRequests::Asked& b) {
                        return a.lowest_chunk < b.lowest_chunk;
                      });
    for (size_t i = 0; i < told; ++i) {
      HeldStart& start = starts.emplace_back();
      start.worker = worker;
      start.step = requests[i].waiting->request.StepToBegin();
      start.waiting_for = WaitsFor(*requests[i].waiting, &awaited);
      start.waits_for_coordinator = start.waiting_for.empty();
    }
  }
  return starts;
}

}  // namespace rubato::server
