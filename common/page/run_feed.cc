#include "common/page/run_feed.h"

#include <cmath>
#include <utility>

#include "common/page/run_points.h"
#include "common/storage/run_record_json.h"

namespace rubato {
namespace {

using Json = nlohmann::ordered_json;

// Columns of a point that say where it is; the others are measured.
constexpr size_t kPlaces = 3;

// One point for two neighbours, which stand for so many: where the later one is, with the means of what was measured.
Json Merged(const Json& first, size_t first_weight, const Json& second, size_t second_weight) {
  Json point = second;
  const double share = static_cast<double>(first_weight) / static_cast<double>(first_weight + second_weight);
  for (size_t i = kPlaces; i < point.size(); ++i) {
    if (first[i].is_null()) continue;
    point[i] =
        second[i].is_null() ? first[i] : Json(first[i].get<double>() * share + second[i].get<double>() * (1 - share));
  }
  return point;
}

template <typename Condition>
void RemoveIf(const Condition& condition, Json* values) {
  Json kept = Json::array();
  for (Json& value : *values) {
    if (!condition(value)) kept.push_back(std::move(value));
  }
  *values = std::move(kept);
}

double Rounded(double seconds) { return std::round(seconds * 1e4) / 1e4; }

// Seconds, and of each worker its index and totals: steps, examples, seconds of data, compute, push and waiting for
// weights, and the sum of its pushes' staleness.
Json WorkerSample(const v1::ProgressLine& line) {
  Json workers = Json::array();
  for (const v1::WorkerTotals& worker : line.workers()) {
    workers.push_back({worker.index(), worker.step(), worker.examples(), Rounded(worker.data_seconds()),
                       Rounded(worker.compute_seconds()), Rounded(worker.push_seconds()),
                       Rounded(worker.pull_wait_seconds()), Rounded(worker.staleness_mean() * worker.step())});
  }
  return {line.t(), std::move(workers)};
}

}  // namespace

Json RunFeed::Nothing() {
  return {
      {"points", Json::array()}, {"evaluations", Json::array()}, {"workers", Json::array()}, {"log", Json::array()}};
}

void RunFeed::Add(const v1::RunRecordLine& line) {
  switch (line.line_case()) {
    case v1::RunRecordLine::kProgress:
      return AddProgress(line.progress());
    case v1::RunRecordLine::kEvaluation:
      return news_["evaluations"].push_back(EvaluationPoint(line.evaluation()));
    case v1::RunRecordLine::LINE_NOT_SET:
      return;
    case v1::RunRecordLine::kStart:
    case v1::RunRecordLine::kPlan:
    case v1::RunRecordLine::kMember:
    case v1::RunRecordLine::kEnd:
    case v1::RunRecordLine::kCheckpoint:
    case v1::RunRecordLine::kRequest:
      break;
    case v1::RunRecordLine::kRollback:
      GoBack(line.rollback());
      break;
  }
  Json entry = Json::parse(RunRecordJson(line));
  if (line.has_start()) {
    start_ = std::move(entry["start"]);
    news_["start"] = start_;
  } else {
    news_["log"].push_back(std::move(entry));
  }
}

void RunFeed::AddProgress(const v1::ProgressLine& line) {
  news_["points"].push_back(ProgressPoint(last_, line));
  news_["workers"].push_back(WorkerSample(line));
  last_ = line;
}

// Of steps that are done again, or of times that come again.
void RunFeed::GoBack(const v1::RollbackLine& rollback) {
  const auto undone = [&](const Json& point) {
    return point[2].get<double>() >= rollback.step() || point[0].get<double>() > rollback.t();
  };
  for (Json* points : {&news_["points"], &news_["evaluations"], &points_.points, &evaluations_.points}) {
    RemoveIf(undone, points);
  }
  // What comes now is no neighbour of what was before.
  points_.last_weight = points_.stride;
  evaluations_.last_weight = evaluations_.stride;
}

void RunFeed::Curve::Add(Json point) {
  if (!points.empty() && last_weight < stride) {
    points.back() = Merged(points.back(), last_weight, point, 1);
    ++last_weight;
    return;
  }
  points.push_back(std::move(point));
  last_weight = 1;
  if (points.size() > kPointsMax) Halve();
}

void RunFeed::Curve::Halve() {
  Json half = Json::array();
  for (size_t i = 0; i + 1 < points.size(); i += 2) {
    half.push_back(Merged(points[i], stride, points[i + 1], i + 2 < points.size() ? stride : last_weight));
  }
  if (points.size() % 2 == 1) {
    half.push_back(std::move(points.back()));
  } else {
    last_weight += stride;
  }
  points = std::move(half);
  stride *= 2;
}

void RunFeed::KeepSample(Json sample) {
  recent_.push_back(std::move(sample));
  if (recent_.size() <= kRecentSamples) return;
  // Totals: what lies between two that are kept is not lost.
  if (samples_seen_++ % stride_ == 0) samples_.push_back(std::move(recent_.front()));
  recent_.pop_front();
  if (samples_.size() <= kWorkerSamplesMax) return;
  Json half = Json::array();
  for (size_t i = 0; i < samples_.size(); i += 2) half.push_back(std::move(samples_[i]));
  samples_ = std::move(half);
  stride_ *= 2;
}

Json RunFeed::News() {
  Json news = std::exchange(news_, Nothing());
  for (const Json& point : news["points"]) points_.Add(point);
  for (const Json& point : news["evaluations"]) evaluations_.Add(point);
  for (const Json& sample : news["workers"]) KeepSample(sample);
  for (const Json& entry : news["log"]) log_.push_back(entry);
  if (log_.size() > kLogMax) {
    log_.erase(log_.begin(), log_.begin() + static_cast<std::ptrdiff_t>(log_.size() - kLogMax));
  }
  return news;
}

Json RunFeed::Everything() const {
  Json workers = samples_;
  for (const Json& sample : recent_) workers.push_back(sample);
  return {{"about", {{"name", about_.name}, {"directory", about_.directory}, {"config", about_.config_text}}},
          {"start", start_},
          {"points", points_.points},
          {"evaluations", evaluations_.points},
          {"workers", std::move(workers)},
          {"log", log_},
          {"stride", {{"points", points_.stride}, {"evaluations", evaluations_.stride}, {"workers", stride_}}}};
}

}  // namespace rubato
