#include "common/gradient_noise/gradient_meter.h"

#include <algorithm>
#include <cmath>

namespace rubato {

bool IsMeasuredStep(int64_t step, int64_t batches) {
  const int64_t begin = step * batches % kBatchesPerMeasurement;
  return begin == 0 || begin + batches > kBatchesPerMeasurement;
}

void GradientMeter::Add(const MeasuredUpdate& update) {
  // The mean of b examples has the expected square |G|^2 + variance / b.
  double mean_of_squares = 0, mean_of_inverses = 0, examples = 0;
  const auto count = static_cast<double>(update.gradients.size());
  for (const MeasuredUpdate::Gradient& gradient : update.gradients) {
    const auto own = static_cast<double>(gradient.examples);
    mean_of_squares += gradient.square / count;
    mean_of_inverses += 1 / (own * count);
    examples += own;
  }
  const double variance = (mean_of_squares - update.mean_square) / (mean_of_inverses - 1 / examples);
  const double signal = update.mean_square - variance / examples;
  if (!std::isfinite(variance) || !std::isfinite(signal)) return;
  moments_.set_updates(moments_.updates() + 1);
  moments_.set_mean_square(moments_.mean_square() + update.mean_square);
  moments_.set_signal(moments_.signal() + signal);
  moments_.set_variance(moments_.variance() + variance);
  AddToBlock(update, variance * mean_of_inverses);
}

void GradientMeter::AddToBlock(const MeasuredUpdate& update, double spread) {
  // Gradients of another plan may be as many times as long.
  if (update.generation < generation_) return;
  if (update.generation > generation_) blocks_.clear();
  generation_ = update.generation;
  Place& place = places_[update.chunk];
  if (place.generation != update.generation) place = {update.generation, 0};
  const int64_t number = place.updates++ / kBlock;
  Block& block = blocks_[number];
  ++block.updates;
  block.spread += spread;
  for (const MeasuredUpdate::Gradient& gradient : update.gradients) {
    Block::Worker& worker = block.workers[gradient.worker];
    ++worker.updates;
    worker.sketch.resize(std::max(worker.sketch.size(), gradient.sketch.size()));
    for (size_t i = 0; i < gradient.sketch.size(); ++i) worker.sketch[i] += static_cast<double>(gradient.sketch[i]);
  }
  if (block.updates < kBlock * chunks_) return;
  blocks_.erase(blocks_.begin(), blocks_.lower_bound(number - kDistance));
  const auto before = blocks_.find(number - kDistance);
  if (before == blocks_.end()) return;
  const std::optional<double> lasting = LastingSpread(before->second, block);
  if (!lasting.has_value()) return;
  moments_.set_spread(moments_.spread() + block.spread);
  moments_.set_lasting_spread(moments_.lasting_spread() + *lasting);
}

std::optional<double> GradientMeter::LastingSpread(const Block& before, const Block& now) {
  const auto is_whole = [&](const Block& block) {
    for (const auto& [index, worker] : block.workers) {
      if (worker.updates != block.updates) return false;
    }
    return block.workers.size() == now.workers.size() && block.updates == now.updates;
  };
  if (!is_whole(before) || !is_whole(now)) return std::nullopt;
  const auto count = static_cast<double>(now.workers.size());
  // Sum over workers of (a - mean of a)(b - mean of b), over the dimensions together.
  double products = 0;
  std::vector<double> sum_before, sum_now;
  for (const auto& [index, worker] : now.workers) {
    const auto other = before.workers.find(index);
    if (other == before.workers.end() || other->second.sketch.size() != worker.sketch.size()) return std::nullopt;
    sum_before.resize(worker.sketch.size());
    sum_now.resize(worker.sketch.size());
    for (size_t i = 0; i < worker.sketch.size(); ++i) {
      products += other->second.sketch[i] * worker.sketch[i];
      sum_before[i] += other->second.sketch[i];
      sum_now[i] += worker.sketch[i];
    }
  }
  for (size_t i = 0; i < sum_now.size(); ++i) products -= sum_before[i] * sum_now[i] / count;
  // The sketches are sums over kBlock steps, and the moments are over these steps, too.
  return products / (count - 1) / kBlock;
}

void AddMoments(const v1::GradientMoments& from, v1::GradientMoments* to) {
  to->set_updates(to->updates() + from.updates());
  to->set_mean_square(to->mean_square() + from.mean_square());
  to->set_signal(to->signal() + from.signal());
  to->set_variance(to->variance() + from.variance());
  to->set_spread(to->spread() + from.spread());
  to->set_lasting_spread(to->lasting_spread() + from.lasting_spread());
}

}  // namespace rubato
