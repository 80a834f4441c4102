#include "cli/capacity/recorded_steps.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace rubato::capacity {
namespace {

// Names of spans, as worker/training has them.
constexpr char kTrainer[] = "trainer";
constexpr char kAwait[] = "await ";
constexpr char kBeginStep[] = "begin step";
constexpr char kPush[] = "push ";
constexpr char kPause[] = "slowed down";

// The time between two marks that is neither a wait nor a pause.
class WorkMeter {
 public:
  explicit WorkMeter(SimTime begin) : mark_(begin) {}

  // That is no work.
  void LeaveOut(SimTime time) { left_out_ += time; }
  // Seconds of work since the last mark, which this is from now on.
  double Mark(SimTime now) {
    const double seconds = ToSeconds(now - mark_ - left_out_);
    mark_ = now;
    left_out_ = 0;
    return seconds > 0 ? seconds : 0;
  }

 private:
  SimTime mark_;
  SimTime left_out_ = 0;
};

std::optional<size_t> LayerOf(absl::string_view span, absl::string_view what,
                              const std::vector<LayerExchange>& layers) {
  if (!absl::ConsumePrefix(&span, what)) return std::nullopt;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].name == span) return i;
  }
  return std::nullopt;
}

// Reads one step from its spans, in their order.
class StepReader {
 public:
  StepReader(const std::vector<LayerExchange>& layers, SimTime begin)
      : layers_(layers), meter_(begin), slot_(&step_.lead) {
    step_.forward.assign(layers.size(), 0);
    step_.backward.assign(layers.size(), 0);
    awaited_.assign(layers.size(), false);
    pushed_.assign(layers.size(), false);
  }

  void Add(const TraceSpan& span) {
    if (const auto layer = LayerOf(span.name, kAwait, layers_)) {
      EndAt(span.begin, &step_.forward[*layer]);
      awaited_[*layer] = true;
    } else if (span.name == kBeginStep) {
      EndAt(span.begin, &step_.tail);
    } else if (const auto pushed = LayerOf(span.name, kPush, layers_)) {
      step_.backward[*pushed] += meter_.Mark(span.end);
      slot_ = &step_.tail;
      pushed_[*pushed] = true;
    }
    if (span.category == "pull") meter_.LeaveOut(span.length());
    if (span.name == kPause) {
      meter_.LeaveOut(span.length());
      step_.pause += ToSeconds(span.length());
    }
  }

  // Nothing if it has not waited for all layers and pushed them.
  std::optional<RecordedStep> End(SimTime end) {
    *slot_ += meter_.Mark(end);
    const auto all = [](const std::vector<bool>& layers) {
      return std::find(layers.begin(), layers.end(), false) == layers.end();
    };
    if (!all(awaited_) || !all(pushed_)) return std::nullopt;
    return step_;
  }

 private:
  // What is worked from now on belongs to `next`.
  void EndAt(SimTime now, double* next) {
    *slot_ += meter_.Mark(now);
    slot_ = next;
  }

  const std::vector<LayerExchange>& layers_;
  RecordedStep step_;
  WorkMeter meter_;
  double* slot_;
  // By layer, of which some are awaited and pushed in parts.
  std::vector<bool> awaited_, pushed_;
};

}  // namespace

std::vector<RecordedStep> ReadRecordedSteps(const TaskTrace& worker, const std::vector<LayerExchange>& layers) {
  std::vector<RecordedStep> steps;
  const TraceRow* trainer = worker.Find(kTrainer);
  if (trainer == nullptr) return steps;
  std::optional<StepReader> reader;
  SimTime end = 0;
  const auto finish = [&] {
    if (!reader.has_value()) return;
    if (std::optional<RecordedStep> step = reader->End(end)) steps.push_back(*std::move(step));
    reader.reset();
  };
  for (const TraceSpan& span : trainer->spans) {
    if (span.category == "step") {
      finish();
      reader.emplace(layers, span.begin);
      end = span.end;
    } else if (reader.has_value() && span.end <= end) {
      reader->Add(span);
    }
  }
  finish();
  return steps;
}

double StepRateOf(const TaskTrace& worker) {
  const TraceRow* trainer = worker.Find(kTrainer);
  if (trainer == nullptr) return 0;
  int64_t steps = 0;
  SimTime first = 0, last = 0;
  for (const TraceSpan& span : trainer->spans) {
    if (span.category != "step") continue;
    if (steps++ == 0) first = span.begin;
    last = span.end;
  }
  return steps >= 2 && last > first ? static_cast<double>(steps) / ToSeconds(last - first) : 0;
}

}  // namespace rubato::capacity
