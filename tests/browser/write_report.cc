// Writes the HTML report of a comparison that has something of everything that the page shows.
//
//   write_report FILE
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <string>

#include "cli/report/comparison.h"
#include "cli/report/html_report.h"
#include "cli/report/run_summary.h"

namespace rubato {
namespace {

constexpr double kTarget = 0.9;
constexpr int kSeeds = 6;

// How a mode does: the seconds of its training, and how fast accuracy rises.
struct Shape {
  const char* name;
  v1::Mode mode;
  double seconds;
  double rate;
};

void AddCurves(const Shape& shape, int seed, RunRecord* record) {
  for (int point = 1; point <= 40; ++point) {
    const double part = point / 40.0, t = shape.seconds * part;
    const double accuracy = 0.95 * (1 - std::exp(-shape.rate * part * (1 + 0.02 * seed)));
    v1::ProgressLine& line = record->progress.emplace_back();
    line.set_t(t);
    line.set_step(point * 50);
    line.set_epoch(4 * part);
    line.set_examples(240000 * part);
    line.set_examples_per_second(240000 / shape.seconds * (1 + 0.1 * std::sin(point + seed)));
    line.set_loss(2.3 * std::exp(-2 * part));
    line.set_accuracy(accuracy);
    line.set_mode(shape.mode);
    for (double count : {1000.0 * point, 300.0 * point, 20.0 * point, 1.0 * point}) line.add_staleness_counts(count);
    for (uint32_t index = 0; index < 8; ++index) {
      v1::WorkerTotals* worker = line.add_workers();
      worker->set_index(index);
      worker->set_step(point * 50);
      worker->set_examples(30000 * part);
      worker->set_staleness_mean(0.3 * index);
      worker->set_work_seconds_p50(0.03);
      worker->set_work_seconds_p90(0.04);
      worker->set_data_seconds(0.02 * t);
      worker->set_compute_seconds((0.3 + 0.05 * index) * t);
      worker->set_push_seconds(0.05 * t);
      worker->set_pull_wait_seconds((0.6 - 0.05 * index) * t);
    }
    if (point % 5 != 0) continue;
    v1::EvaluationLine& evaluation = record->evaluations.emplace_back();
    evaluation.set_t(t);
    evaluation.set_step(point * 50);
    evaluation.set_epoch(4 * part);
    evaluation.set_loss(2.4 * std::exp(-2 * part));
    evaluation.set_accuracy(accuracy);
    evaluation.set_auc(0.5 + accuracy / 2);
  }
}

void AddEvents(const Shape& shape, RunRecord* record) {
  for (uint32_t generation : {1, 2}) {
    v1::PlanLine& plan = record->plans.emplace_back();
    plan.set_t(generation == 1 ? 0 : shape.seconds / 2);
    plan.set_generation(generation);
    plan.set_mode(generation == 1 ? v1::SYNC : shape.mode);
    plan.set_quorum(generation == 2 && shape.mode == v1::SYNC ? 6 : 0);
    plan.set_learning_rate_scale(0.75);
    plan.set_reason(
        "quorum: with 6 of 8 contributions a step takes 41.5 ms instead of 97.1 with 8, and training is 1.75 times as "
        "fast");
    plan.set_stall_seconds(0.04);
  }
  v1::MemberLine& member = record->members.emplace_back();
  member.set_t(3);
  member.set_task("worker 3");
  member.set_event(v1::MemberLine::EVICTED);
  member.set_reason("no heartbeat for 5.0 s");
  v1::CheckpointLine& checkpoint = record->checkpoints.emplace_back();
  checkpoint.set_t(4);
  checkpoint.set_name("step150");
  checkpoint.set_bytes(2.5e6);
  v1::RollbackLine& rollback = record->rollbacks.emplace_back();
  rollback.set_t(5);
  rollback.set_step(150);
  rollback.set_reason("server 1 was lost");
}

ComparedRun MakeRun(const Shape& shape, int seed) {
  ComparedRun run;
  run.seed = static_cast<uint64_t>(seed);
  run.directory = std::string(shape.name) + "-seed" + std::to_string(seed);
  run.audit = AuditResult::kHeld;
  v1::StartLine& start = run.record.start.emplace();
  start.set_job("fashion_mnist_cnn");
  start.set_workers(8);
  start.set_servers(2);
  start.set_batch_size(32);
  start.set_train_examples(60000);
  start.set_epochs(4);
  start.set_target_accuracy(kTarget);
  start.set_loss(v1::ModelConfig::SOFTMAX_CROSS_ENTROPY);
  AddCurves(shape, seed, &run.record);
  AddEvents(shape, &run.record);
  v1::EndLine& end = run.record.end.emplace();
  end.set_t(shape.seconds + 1);
  end.set_ok(true);
  end.set_examples_per_second(240000 / shape.seconds);
  run.summary = SummarizeRun(run.record, {.value = kTarget});
  return run;
}

Comparison MakeComparison() {
  Comparison comparison;
  comparison.job = "fashion_mnist_cnn";
  comparison.target = {.value = kTarget};
  comparison.config_text = "name: \"fashion_mnist_cnn\"\n";
  comparison.slowed = "all workers: sleep=30ms+bimodal=x6,0.125";
  for (const Shape& shape : {Shape{"sync", v1::SYNC, 97, 3.2}, Shape{"ssp:3", v1::SSP, 52, 2.9},
                             Shape{"async", v1::ASYNC, 33, 2.6}, Shape{"quorum", v1::SYNC, 55, 3.1}}) {
    ComparedMode mode = {shape.name, {}};
    for (int seed = 1; seed <= kSeeds; ++seed) mode.runs.push_back(MakeRun(shape, seed));
    comparison.modes.push_back(std::move(mode));
  }
  for (const ComparedMode& mode : comparison.modes) {
    comparison.tunings.push_back(
        {.mode = mode.name, .runs = {{.learning_rate = 0.1}, {.learning_rate = 0.2}}, .best = 1});
  }
  return comparison;
}

}  // namespace
}  // namespace rubato

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write_report FILE\n";
    return 1;
  }
  std::ofstream file(argv[1]);
  file << rubato::HtmlReport(rubato::MakeComparison());
  file.close();
  return file.good() ? 0 : 1;
}
