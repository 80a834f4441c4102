#include "worker/training/prefetch_options.h"

#include <utility>

#include "common/config/local_sgd.h"
#include "worker/data/image_augmenter.h"

namespace rubato::worker {

Prefetcher::Options PrefetchOptions(const v1::JobConfig& config, std::shared_ptr<const Dataset> dataset,
                                    const Clock* clock) {
  Prefetcher::Options prefetch;
  prefetch.dataset = std::move(dataset);
  prefetch.clock = clock;
  prefetch.seed = config.seed();
  prefetch.shuffle = !config.data().no_shuffle();
  prefetch.batch_size = ExamplesPerStep(config);
  prefetch.queue_batches = config.data().prefetch_batches();
  prefetch.threads = static_cast<int>(config.data().prefetch_threads());
  if (config.data().has_augmentation()) {
    prefetch.augmenter = std::make_shared<const ImageAugmenter>(config.data().augmentation(), config.seed(),
                                                                prefetch.dataset->input_shape());
  }
  return prefetch;
}

}  // namespace rubato::worker
