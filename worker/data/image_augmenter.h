#ifndef RUBATO_WORKER_DATA_IMAGE_AUGMENTER_H_
#define RUBATO_WORKER_DATA_IMAGE_AUGMENTER_H_

#include <cstdint>

#include "common/shape.h"
#include "proto/data_config.pb.h"

namespace rubato::worker {

// Moves and mirrors images at random (He et al. 2016, as for CIFAR-10). What becomes of an image depends on the seed,
// the epoch and the example's number alone, so it is the same on every worker and in every run. Immutable and
// thread-safe.
class ImageAugmenter {
 public:
  // `config` is valid (common/config) for `shape`: channels, height, width.
  ImageAugmenter(const v1::ImageAugmentation& config, uint64_t seed, const Shape& shape);

  // Changes `image` [channels, height, width] to what it is in this epoch.
  void Apply(int64_t epoch, int64_t example, float* image) const;

 private:
  // Pixel (row, column) becomes what was at (row + down, column + right), or zero if that is outside; mirrored
  // afterwards.
  struct Change {
    int64_t down;
    int64_t right;
    bool mirrored;
  };

  Change Draw(int64_t epoch, int64_t example) const;
  // `from` and `to` [height, width].
  void ApplyToPlane(const Change& change, const float* from, float* to) const;

  const int64_t padding_;
  const bool mirrors_;
  const uint64_t seed_;
  const int64_t channels_, height_, width_;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DATA_IMAGE_AUGMENTER_H_
