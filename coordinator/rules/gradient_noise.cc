#include "coordinator/rules/gradient_noise.h"

#include <algorithm>
#include <cmath>

namespace rubato::coordinator {

void GradientNoise::OnHeartbeat(const v1::TaskId& server, const v1::GradientMoments& moments) {
  Server& known = servers_[server.index()];
  if (known.incarnation != server.incarnation()) known = {server.incarnation(), {}};
  if (moments.updates() <= known.moments.updates()) return;
  const Sums added = {.steps = static_cast<double>(moments.updates() - known.moments.updates()) / chunks_,
                      .mean_square = moments.mean_square() - known.moments.mean_square(),
                      .signal = moments.signal() - known.moments.signal(),
                      .variance = moments.variance() - known.moments.variance(),
                      .spread = moments.spread() - known.moments.spread(),
                      .lasting_spread = moments.lasting_spread() - known.moments.lasting_spread()};
  known.moments = moments;
  const auto add = [&added](double kept, Sums* to) {
    to->steps = kept * to->steps + added.steps;
    to->mean_square = kept * to->mean_square + added.mean_square;
    to->signal = kept * to->signal + added.signal;
    to->variance = kept * to->variance + added.variance;
    to->spread = kept * to->spread + added.spread;
    to->lasting_spread = kept * to->lasting_spread + added.lasting_spread;
  };
  add(1, &sums_);
  add(std::exp(-added.steps / kSteps), &recent_);
}

v1::GradientNoise GradientNoise::Recent() const {
  v1::GradientNoise noise;
  if (recent_.steps == 0) return noise;
  noise.set_norm(std::sqrt(recent_.mean_square / recent_.steps));
  const bool is_known = sums_.steps >= kFirstSteps && recent_.signal > 0;
  // Of equal gradients rounding may leave less than nothing.
  if (is_known) noise.set_scale_examples(std::fmax(0, recent_.variance / recent_.signal));
  // Chance gives estimates under 0 where nothing lasts.
  if (recent_.spread > 0) noise.set_lasting_share(std::clamp(recent_.lasting_spread / recent_.spread, 0.0, 1.0));
  return noise;
}

}  // namespace rubato::coordinator
