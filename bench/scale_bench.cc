// What a push costs a server's rules, and how that grows with the number of members: one partition and synthetic
// members, each of which pushes to all chunks in every step, in an order of chance. Weights and bytes are left out.
//
//   bazel run //bench:scale_bench -- --chunks=256 --chunks_per_request=16

#include <malloc.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/bench_output.h"
#include "common/transport/process_tuning.h"
#include "server/rules/partition.h"

namespace rubato::bench {
namespace {

using server::Partition;
using server::PartitionReply;
using server::PartitionRequest;
using SteadyClock = std::chrono::steady_clock;

struct Flags {
  std::vector<uint32_t> members = {2, 8, 32, 128, 512, 1024};
  uint32_t chunks = 256;
  uint32_t chunks_per_request = 16;
  // Of all numbers of members, in turns: a machine's speed changes from second to second.
  int rounds = 15;
  // Pushes of a chunk that are measured in a round at least.
  int64_t pushes = int64_t{1} << 16;
  // These rules alone, if it is not empty: for a profiler.
  std::string only;
};

struct Rules {
  std::string name;
  v1::Mode mode;
  int64_t staleness_bound = 0;
  // Of the members.
  double quorum = 0;
};

double Seconds(SteadyClock::duration duration) { return std::chrono::duration<double>(duration).count(); }

double HeapBytes() { return static_cast<double>(mallinfo2().uordblks); }

// Counts answers; everything else is somebody else's cost.
class CountingSink : public server::PartitionSink {
 public:
  bool IsFinite(uint32_t, const server::Contribution&) override { return true; }
  void Apply(const server::ChunkRules::Update&) override {}
  void Answer(const PartitionReply& reply) override {
    if (reply.outcome == v1::ExchangeReply::OK) {
      ++answered;
      return;
    }
    std::cerr << "a request was not answered OK but " << v1::ExchangeReply::Outcome_Name(reply.outcome) << ": "
              << reply.message << std::endl;
    std::exit(1);
  }
  void Capture(uint64_t, uint32_t) override {}
  void CaptureCut(const v1::Cut&, uint32_t) override {}
  void Log(const v1::UpdateLogRecord&) override {}

  int64_t answered = 0;
};

// A partition and all of its members.
class Job {
 public:
  Job(const Flags& flags, const Rules& rules, uint32_t members)
      : flags_(flags), rules_(rules), members_(members), partition_(Chunks(0, flags.chunks), absl::Hours(1), &sink_) {
    for (uint32_t member = 0; member < members; ++member) {
      for (uint32_t first = 0; first < flags.chunks; first += flags.chunks_per_request)
        order_.emplace_back(member, first);
    }
  }

  // Enters a plan whose first step is the next one. Returns the seconds that takes the partition.
  double EnterPlan() {
    v1::Plan plan;
    plan.set_generation(++generation_);
    plan.set_mode(rules_.mode);
    plan.set_staleness_bound(rules_.staleness_bound);
    plan.set_quorum(static_cast<uint32_t>(rules_.quorum * members_));
    plan.set_first_step(step_);
    for (uint32_t member = 0; member < members_; ++member) *plan.add_members() = TaskOf(member);
    const SteadyClock::time_point begun = SteadyClock::now();
    partition_.Commit(plan, absl::UnixEpoch());
    const double seconds = Seconds(SteadyClock::now() - begun);
    Send(PartitionRequest::Kind::kPull, order_.size());
    ExpectAnswers();
    return seconds;
  }

  int64_t pushes_of_step() const { return int64_t{members_} * flags_.chunks; }

  // All members push once. Returns the seconds that takes the partition.
  double Step() {
    std::shuffle(order_.begin(), order_.end(), random_);
    const double seconds = Send(PartitionRequest::Kind::kPushPull, order_.size());
    ExpectAnswers();
    ++step_;
    return seconds;
  }

  // The same, and stops before the last member's first request to look at those who wait for it. Returns the seconds
  // that takes.
  double StepWithALook() {
    const uint32_t last = members_ - 1;
    std::shuffle(order_.begin(), order_.end(), random_);
    const auto late =
        std::stable_partition(order_.begin(), order_.end(), [&](const auto& request) { return request.first != last; });
    const auto count = static_cast<size_t>(late - order_.begin());
    Send(PartitionRequest::Kind::kPushPull, count);
    v1::ServerProgress progress;
    const SteadyClock::time_point begun = SteadyClock::now();
    partition_.Describe(&progress);
    const std::vector<server::HeldStart> held = partition_.HeldStarts();
    const double seconds = Seconds(SteadyClock::now() - begun);
    Send(PartitionRequest::Kind::kPushPull, order_.size(), count);
    ExpectAnswers();
    ++step_;
    return seconds;
  }

 private:
  static std::vector<uint32_t> Chunks(uint32_t first, uint32_t count) {
    std::vector<uint32_t> chunks(count);
    std::iota(chunks.begin(), chunks.end(), first);
    return chunks;
  }

  static v1::TaskId TaskOf(uint32_t member) {
    v1::TaskId task;
    task.set_role(v1::TaskId::WORKER);
    task.set_index(member);
    task.set_incarnation(member + 1);
    return task;
  }

  PartitionRequest RequestOf(PartitionRequest::Kind kind, uint32_t member, uint32_t first) {
    PartitionRequest request;
    request.token = ++token_;
    request.kind = kind;
    request.task = TaskOf(member);
    request.generation = generation_;
    request.step = step_;
    request.chunks = Chunks(first, std::min(flags_.chunks_per_request, flags_.chunks - first));
    if (kind == PartitionRequest::Kind::kPull) return request;
    auto header = std::make_shared<server::PushHeader>();
    header->task = request.task;
    header->generation = generation_;
    header->step = step_;
    request.contributions.assign(request.chunks.size(), {.header = header, .gradient = nullptr, .examples = 1});
    return request;
  }

  // Of order_, from `begin` to `end`.
  double Send(PartitionRequest::Kind kind, size_t end, size_t begin = 0) {
    double seconds = 0;
    for (size_t i = begin; i < end; ++i) {
      PartitionRequest request = RequestOf(kind, order_[i].first, order_[i].second);
      const SteadyClock::time_point begun = SteadyClock::now();
      partition_.OnRequest(std::move(request), absl::UnixEpoch());
      seconds += Seconds(SteadyClock::now() - begun);
    }
    return seconds;
  }

  void ExpectAnswers() {
    if (std::exchange(sink_.answered, 0) == static_cast<int64_t>(order_.size())) return;
    std::cerr << rules_.name << " with " << members_ << " members: requests of step " << step_
              << " were not answered\n";
    std::exit(1);
  }

  const Flags flags_;
  const Rules rules_;
  const uint32_t members_;
  CountingSink sink_;
  Partition partition_;
  // A member, and the first chunk of a request.
  std::vector<std::pair<uint32_t, uint32_t>> order_;
  std::mt19937_64 random_{1};
  uint64_t token_ = 0;
  uint64_t generation_ = 0;
  int64_t step_ = 0;
};

// One number of members.
struct Case {
  std::unique_ptr<Job> job;
  double bytes = 0;
  // A push, and to that of the first case in the same round.
  std::vector<double> pushes, quotients;
  std::vector<double> looks, plans;
};

// Seconds of a push, in the mean of some steps.
double Pushes(const Flags& flags, Job& job) {
  const int64_t steps = std::max<int64_t>(1, flags.pushes / job.pushes_of_step());
  double seconds = 0;
  for (int64_t step = 0; step < steps; ++step) seconds += job.Step();
  return seconds / static_cast<double>(steps * job.pushes_of_step());
}

std::vector<BenchCase> Measure(const Flags& flags, const Rules& rules) {
  std::vector<Case> cases;
  for (uint32_t members : flags.members) {
    const double heap = HeapBytes();
    Case& added = cases.emplace_back();
    added.job = std::make_unique<Job>(flags, rules, members);
    added.job->EnterPlan();
    for (int i = 0; i < 2; ++i) added.job->Step();
    added.bytes = HeapBytes() - heap;
  }
  for (int round = 0; round < flags.rounds; ++round) {
    for (Case& one : cases) {
      one.job->Step();  // Its memory comes into the caches, as far as it has room there.
      one.pushes.push_back(Pushes(flags, *one.job));
      one.quotients.push_back(one.pushes.back() / cases.front().pushes.back());
      one.looks.push_back(one.job->StepWithALook());
      one.plans.push_back(one.job->EnterPlan());
    }
  }
  std::vector<BenchCase> measured;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& one = cases[i];
    measured.push_back({absl::StrCat(rules.name, " ", flags.members[i]),
                        {{"push_ns", Median(one.pushes) * 1e9},
                         {"of_fewest", Median(one.quotients)},
                         {"describe_ms", Median(one.looks) * 1e3},
                         {"plan_ms", Median(one.plans) * 1e3},
                         {"member_chunk_bytes", one.bytes / static_cast<double>(one.job->pushes_of_step())}}});
  }
  return measured;
}

int Run(int argc, char** argv) {
  CLI::App app("What a push of a chunk costs a server's rules, by the number of members");
  Flags flags;
  app.add_option("--members", flags.members, "Numbers of members, separated by commas")->delimiter(',');
  app.add_option("--chunks", flags.chunks, "Of the partition")->check(CLI::Range(1, 100000));
  app.add_option("--chunks_per_request", flags.chunks_per_request, "Of each request")->check(CLI::Range(1, 100000));
  app.add_option("--rounds", flags.rounds, "Of all numbers of members, in turns")->check(CLI::Range(1, 1000000));
  app.add_option("--pushes", flags.pushes, "Pushes of a chunk that are measured in a round at least")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  app.add_option("--only", flags.only, "One case's rules alone")
      ->check(CLI::IsMember({"sync", "ssp:1", "async", "quorum"}));
  CLI11_PARSE(app, argc, argv);
  std::vector<BenchCase> cases;
  for (const Rules& rules : {Rules{"sync", v1::SYNC}, Rules{"ssp:1", v1::SSP, 1}, Rules{"async", v1::ASYNC},
                             Rules{"quorum", v1::SYNC, 0, 0.75}}) {
    if (!flags.only.empty() && flags.only != rules.name) continue;
    for (BenchCase& measured : Measure(flags, rules)) cases.push_back(std::move(measured));
  }
  PrintCases(cases);
  return 0;
}

}  // namespace
}  // namespace rubato::bench

int main(int argc, char** argv) {
  rubato::UseHugePages();  // As servers do.
  return rubato::bench::Run(argc, argv);
}
