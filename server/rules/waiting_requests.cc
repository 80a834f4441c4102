#include "server/rules/waiting_requests.h"

#include <algorithm>
#include <utility>

namespace rubato::server {

WaitingRequests::Waiting& WaitingRequests::Add(PartitionRequest request, absl::Time deadline) {
  auto added = std::make_unique<Waiting>();
  Waiting& waiting = *added;
  waiting.request = std::move(request);
  waiting.deadline = deadline;
  const std::vector<uint32_t>& chunks = waiting.request.chunks;
  if (waiting.request.kind == PartitionRequest::Kind::kSnapshot) {
    waiting.to_capture = chunks;
    snapshots_.push_back(&waiting);
  } else {
    const auto [lowest, highest] = std::minmax_element(chunks.begin(), chunks.end());
    by_worker_[waiting.request.task.index()].push_back({&waiting, *lowest, *highest});
  }
  waiting_[waiting.request.token] = std::move(added);
  return waiting;
}

void WaitingRequests::Remove(uint64_t token) {
  const auto found = waiting_.find(token);
  if (found == waiting_.end()) return;
  Waiting& waiting = *found->second;
  Unwatch(waiting);
  if (waiting.request.kind == PartitionRequest::Kind::kSnapshot) {
    snapshots_.erase(std::find(snapshots_.begin(), snapshots_.end(), &waiting));
  } else {
    std::vector<Asked>& asked = by_worker_.at(waiting.request.task.index());
    asked.erase(std::find_if(asked.begin(), asked.end(), [&](const Asked& a) { return a.waiting == &waiting; }));
  }
  waiting_.erase(found);
}

WaitingRequests::Waiting* WaitingRequests::Find(uint64_t token) const {
  const auto found = waiting_.find(token);
  return found == waiting_.end() ? nullptr : found->second.get();
}

std::vector<uint64_t> WaitingRequests::Tokens() const {
  std::vector<uint64_t> tokens;
  tokens.reserve(waiting_.size());
  for (const auto& [token, waiting] : waiting_) tokens.push_back(token);
  std::sort(tokens.begin(), tokens.end());
  return tokens;
}

const std::vector<WaitingRequests::Asked>& WaitingRequests::Of(uint32_t worker) const {
  static const auto* const kNone = new std::vector<Asked>();
  const auto found = by_worker_.find(worker);
  return found == by_worker_.end() ? *kNone : found->second;
}

std::vector<uint32_t> WaitingRequests::Workers() const {
  std::vector<uint32_t> workers;
  for (const auto& [worker, requests] : by_worker_) {
    if (!requests.empty()) workers.push_back(worker);
  }
  std::sort(workers.begin(), workers.end());
  return workers;
}

void WaitingRequests::WatchOne(Waiting& waiting, uint32_t chunk) {
  Unwatch(waiting);
  waiting.watch = Watch::kOne;
  waiting.watched = chunk;
  by_chunk_[chunk].of_one.push_back(waiting.request.token);
}

void WaitingRequests::WatchAll(Waiting& waiting) {
  if (waiting.watch == Watch::kAll) return;
  Unwatch(waiting);
  waiting.watch = Watch::kAll;
  for (uint32_t chunk : waiting.request.chunks) by_chunk_[chunk].of_all.push_back(waiting.request.token);
}

void WaitingRequests::Unwatch(Waiting& waiting) {
  const auto erase = [&](std::vector<uint64_t>& tokens) {
    tokens.erase(std::find(tokens.begin(), tokens.end(), waiting.request.token));
  };
  switch (std::exchange(waiting.watch, Watch::kNothing)) {
    case Watch::kNothing:
      break;
    case Watch::kOne:
      erase(by_chunk_.at(waiting.watched).of_one);
      break;
    case Watch::kAll:
      for (uint32_t chunk : waiting.request.chunks) erase(by_chunk_.at(chunk).of_all);
      break;
  }
}

std::vector<uint64_t> WaitingRequests::TakeWatchers(const std::vector<uint32_t>& chunks) {
  std::vector<uint64_t> tokens;
  for (uint32_t chunk : chunks) {
    const auto found = by_chunk_.find(chunk);
    if (found == by_chunk_.end()) continue;
    Watchers& watchers = found->second;
    for (uint64_t token : watchers.of_one) waiting_.at(token)->watch = Watch::kNothing;
    tokens.insert(tokens.end(), watchers.of_one.begin(), watchers.of_one.end());
    tokens.insert(tokens.end(), watchers.of_all.begin(), watchers.of_all.end());
    watchers.of_one.clear();
  }
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  return tokens;
}

void WaitingRequests::ForgetWatches() {
  by_chunk_.clear();
  for (auto& [token, waiting] : waiting_) waiting->watch = Watch::kNothing;
}

}  // namespace rubato::server
