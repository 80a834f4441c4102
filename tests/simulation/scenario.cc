#include "tests/simulation/scenario.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/random.h"
#include "common/task.h"

namespace rubato::simulation {
namespace {

absl::Duration Between(Random& random, int64_t low_ms, int64_t high_ms) {
  return absl::Milliseconds(low_ms + static_cast<int64_t>(random.Below(high_ms - low_ms + 1)));
}

Rules DrawRules(Random& random, uint32_t workers) {
  Rules rules;
  switch (random.Below(4)) {
    case 0:
      rules.quorum = 1 + static_cast<uint32_t>(random.Below(workers));
      break;
    case 1:
      break;
    case 2:
      rules.mode = v1::SSP;
      rules.staleness_bound = 1 + static_cast<int64_t>(random.Below(4));
      break;
    case 3:
      rules.mode = v1::ASYNC;
      break;
  }
  return rules;
}

Fault At(Random& random, Fault::Kind kind, const Scenario& scenario) {
  Fault fault{.kind = kind, .at = Between(random, 50, absl::ToInt64Milliseconds(scenario.heal_at))};
  fault.worker = static_cast<uint32_t>(random.Below(scenario.workers));
  fault.server = static_cast<uint32_t>(random.Below(scenario.servers));
  return fault;
}

void DrawCrashes(Random& random, Scenario& scenario) {
  for (uint64_t n = random.Below(3); n > 0; --n) {
    Fault crash = At(random, Fault::Kind::kCrashWorker, scenario);
    scenario.faults.push_back(crash);
    if (random.Below(3) == 0) continue;
    Fault back = crash;
    back.kind = Fault::Kind::kStartWorker;
    back.at += Between(random, 0, 3000);
    scenario.faults.push_back(back);
  }
}

void DrawWorkerFaults(Random& random, Scenario& scenario) {
  DrawCrashes(random, scenario);
  for (uint64_t n = random.Below(3); n > 0; --n) {
    Fault join = At(random, Fault::Kind::kStartWorker, scenario);
    join.worker = static_cast<uint32_t>(random.Below(kMostWorkers));
    scenario.faults.push_back(join);
  }
  for (uint64_t n = random.Below(2); n > 0; --n) {
    Fault freeze = At(random, Fault::Kind::kFreezeWorker, scenario);
    freeze.length = Between(random, 100, 4000);
    scenario.faults.push_back(freeze);
  }
}

void DrawCoordinatorCrash(Random& random, Scenario& scenario, absl::Duration at) {
  Fault crash{.kind = Fault::Kind::kCrashCoordinator, .at = at};
  crash.length = Between(random, 50, 3000);
  crash.step = static_cast<uint32_t>(random.Below(6));
  crash.at_decision = random.Below(2) == 0;
  scenario.faults.push_back(crash);
}

// What goes wrong while the job goes back to its last checkpoint, or shortly before or after.
void DrawMore(Random& random, Scenario& scenario, const Fault& first) {
  const int64_t window = absl::ToInt64Milliseconds(first.length + scenario.lease + scenario.server_grace);
  for (uint64_t n = random.Below(4); n > 0; --n) {
    Fault more = At(random, Fault::Kind::kCrashServer, scenario);
    more.at = first.at + Between(random, 0, std::min<int64_t>(window, 4000));
    more.length = Between(random, 50, 2000);
    switch (random.Below(4)) {
      case 0:
        break;
      case 1:
        more.kind = Fault::Kind::kFreezeServer;
        break;
      case 2:
        more.kind = Fault::Kind::kCrashWorker;
        break;
      case 3:
        DrawCoordinatorCrash(random, scenario, more.at);
        continue;
    }
    scenario.faults.push_back(more);
    if (more.kind != Fault::Kind::kCrashWorker) continue;
    more.kind = Fault::Kind::kStartWorker;
    more.at += more.length;
    scenario.faults.push_back(more);
  }
}

void DrawServerFaults(Random& random, Scenario& scenario) {
  // Mostly late enough that there is something to go back to.
  if (random.Below(3) > 0) {
    scenario.heal_at += Between(random, 1000, 5000);
    scenario.cut_steps = 2 + static_cast<int64_t>(random.Below(4));
  }
  // One that stays away is the last one by index, so that another is left.
  if (scenario.servers > 1 && random.Below(5) == 0) {
    Fault lost = At(random, Fault::Kind::kCrashServer, scenario);
    lost.server = scenario.servers - 1;
    lost.length = absl::InfiniteDuration();
    scenario.faults.push_back(lost);
  }
  Fault first = At(random, random.Below(3) == 0 ? Fault::Kind::kFreezeServer : Fault::Kind::kCrashServer, scenario);
  first.at = scenario.heal_at / 2 + first.at / 2;
  first.length = Between(random, 50, 4000);
  scenario.faults.push_back(first);
  if (random.Below(2) == 0) DrawMore(random, scenario, first);
}

void DrawFaults(Random& random, Scenario& scenario) {
  using Kind = Fault::Kind;
  for (uint64_t n = random.Below(7); n > 0; --n) {
    Fault change = At(random, Kind::kSwitchMode, scenario);
    change.rules = DrawRules(random, scenario.workers);
    scenario.faults.push_back(change);
  }
  for (uint64_t n = random.Below(4); n > 0; --n) scenario.faults.push_back(At(random, Kind::kBreakStream, scenario));
  for (uint64_t n = random.Below(3); n > 0; --n) {
    scenario.faults.push_back(At(random, Kind::kRequestCheckpoint, scenario));
  }
  // Half of the runs lose nobody, so that long stretches without an eviction are there, too.
  if (random.Below(2) == 0) return;
  DrawWorkerFaults(random, scenario);
  for (uint64_t n = random.Below(3); n > 0; --n) {
    DrawCoordinatorCrash(random, scenario, At(random, Kind::kCrashCoordinator, scenario).at);
  }
  if (random.Below(2) == 0) DrawServerFaults(random, scenario);
}

void DrawCheckpoints(Random& random, Scenario& scenario) {
  scenario.server_grace = Between(random, 0, 4000);
  scenario.launcher = Between(random, 10, 2000);
  if (random.Below(3) > 0) scenario.cut_steps = 2 + static_cast<int64_t>(random.Below(8));
  if (random.Below(4) == 0) scenario.cut_interval = Between(random, 200, 3000);
  scenario.keep_cuts = 1 + static_cast<uint32_t>(random.Below(3));
  scenario.writing = Between(random, 1, 500);
  scenario.fingerprints = random.Below(4) > 0;
}

}  // namespace

Scenario DrawScenario(uint64_t seed) {
  Random random(seed, StreamId("scenario"));
  Scenario scenario;
  scenario.seed = seed;
  scenario.servers = 1 + static_cast<uint32_t>(random.Below(3));
  scenario.partitions = 1 + static_cast<uint32_t>(random.Below(2));
  scenario.workers = 1 + static_cast<uint32_t>(random.Below(4));
  scenario.chunks = 2 + static_cast<uint32_t>(random.Below(7));
  scenario.steps = 15 + static_cast<int>(random.Below(25));
  scenario.start = DrawRules(random, scenario.workers);
  if (random.Below(5) > 0) {
    scenario.loss = 0.15 * random.Uniform() * random.Uniform();
    scenario.duplication = 0.3 * random.Uniform() * random.Uniform();
    scenario.straggling = 0.2 * random.Uniform() * random.Uniform();
  }
  scenario.latency = Between(random, 1, 20);
  scenario.straggler_latency = Between(random, 100, 2000);
  scenario.heal_at = Between(random, 2000, 8000);
  scenario.timeout = Between(random, 200, 2000);
  scenario.lease = Between(random, 800, 3000);
  scenario.resend = Between(random, 200, 1500);
  for (uint32_t worker = 0; worker < kMostWorkers; ++worker) {
    const int64_t slow = random.Below(4) == 0 ? 10 : 1;
    scenario.compute.push_back(Between(random, 1, 30) * slow);
  }
  DrawCheckpoints(random, scenario);
  DrawFaults(random, scenario);
  scenario.names_boots = random.Below(2) == 0;
  if (!scenario.faults.empty() && random.Below(4) == 0) {
    Fault full = At(random, Fault::Kind::kFillDisk, scenario);
    full.length = Between(random, 50, 4000);
    scenario.faults.push_back(full);
  }
  if (!scenario.faults.empty() && random.Below(4) == 0) {
    Fault freeze = At(random, Fault::Kind::kFreezeCoordinator, scenario);
    freeze.length = Between(random, 100, 4000);
    freeze.replaced = random.Below(2) == 0;
    scenario.faults.push_back(freeze);
  }
  // As many steps as workers do otherwise. A coordinator that does not notice a power cut may wait for ever for shards
  // of which it has lost that they are finished.
  if (random.Below(3) == 0) {
    scenario.examples = 1 + static_cast<int64_t>(random.Below(100 * scenario.workers));
    scenario.names_boots = true;
  }
  scenario.clients = random.Below(5) == 0;
  scenario.own = scenario.clients && scenario.examples == 0 && random.Below(2) == 0;
  scenario.mean = scenario.clients && random.Below(3) == 0;
  // No other mode may be asked for.
  if (scenario.mean && scenario.start.mode != v1::SYNC) scenario.start = {};
  // Drawn last, so that a run without a table is the same as before there were tables.
  if (!scenario.clients && random.Below(3) == 0) {
    scenario.shards = 1u << random.Below(3);
    if (random.Below(2) == 0) scenario.rows_by = v1::TableConfig::ADAGRAD;
    scenario.rows_in_bf16 = random.Below(2) == 0;
    if (random.Below(2) == 0) scenario.rows_expire_after = 1 + static_cast<uint32_t>(random.Below(12));
    if (random.Below(2) == 0) scenario.rows_admit_after = 2 + static_cast<uint32_t>(random.Below(3));
    if (random.Below(3) == 0) scenario.most_rows = 256;
  }
  return scenario;
}

std::string Describe(const Scenario& scenario) {
  std::string text = absl::StrCat(
      "seed ", scenario.seed, ": ", scenario.servers, " servers of ", scenario.partitions, " partitions, ",
      scenario.workers, " workers, ", scenario.chunks, " chunks, ",
      scenario.examples > 0 ? absl::StrCat(scenario.examples, " examples") : absl::StrCat(scenario.steps, " steps"),
      ", starts in ", ModeName(scenario.start.mode, scenario.start.staleness_bound));
  if (scenario.start.quorum > 0) absl::StrAppend(&text, " with quorum ", scenario.start.quorum);
  if (scenario.clients) absl::StrAppend(&text, scenario.own ? ", of clients with data of their own" : ", of clients");
  if (scenario.mean) absl::StrAppend(&text, ", who ask for means");
  if (scenario.shards > 0) {
    absl::StrAppend(&text, ", a table of ", scenario.shards, " shards with ",
                    v1::TableConfig::Algorithm_Name(scenario.rows_by));
    if (scenario.rows_in_bf16) absl::StrAppend(&text, " in bf16");
    if (scenario.rows_admit_after > 1) {
      absl::StrAppend(&text, ", whose keys have rows from push ", scenario.rows_admit_after, " on");
    }
    if (scenario.rows_expire_after > 0) {
      absl::StrAppend(&text, ", whose rows go after ", scenario.rows_expire_after, " steps");
    }
    if (scenario.most_rows > 0) absl::StrAppend(&text, ", which has ", scenario.most_rows, " rows at most");
  }
  absl::StrAppend(&text, "; loss ", scenario.loss, ", duplication ", scenario.duplication, ", straggling ",
                  scenario.straggling, " until ", absl::FormatDuration(scenario.heal_at), "; ", scenario.faults.size(),
                  " faults");
  return text;
}

}  // namespace rubato::simulation
