#include "worker/data/image_augmenter.h"

#include <algorithm>
#include <vector>

#include "common/random.h"

namespace rubato::worker {

ImageAugmenter::ImageAugmenter(const v1::ImageAugmentation& config, uint64_t seed, const Shape& shape)
    : padding_(config.crop_padding()),
      mirrors_(config.horizontal_flip()),
      seed_(seed),
      channels_(shape[0]),
      height_(shape[1]),
      width_(shape[2]) {}

ImageAugmenter::Change ImageAugmenter::Draw(int64_t epoch, int64_t example) const {
  const auto words =
      PhiloxBlock(seed_, StreamId("augment", static_cast<uint64_t>(epoch)), static_cast<uint64_t>(example));
  // In -padding to padding. The places' probabilities differ by less than 2^-20 of them.
  const auto place = [this](uint32_t word) {
    return static_cast<int64_t>(uint64_t{word} * static_cast<uint64_t>(2 * padding_ + 1) >> 32) - padding_;
  };
  return {.down = place(words[0]), .right = place(words[1]), .mirrored = mirrors_ && (words[2] & 1) != 0};
}

void ImageAugmenter::ApplyToPlane(const Change& change, const float* from, float* to) const {
  // Columns of the moved image that lie inside of `from`.
  const int64_t begin = std::clamp<int64_t>(-change.right, 0, width_);
  const int64_t end = std::clamp<int64_t>(width_ - change.right, 0, width_);
  std::fill_n(to, height_ * width_, 0.0f);
  for (int64_t row = 0; row < height_; ++row) {
    const int64_t source = row + change.down;
    if (source < 0 || source >= height_) continue;
    float* line = to + row * width_;
    std::copy(from + source * width_ + begin + change.right, from + source * width_ + end + change.right, line + begin);
    if (change.mirrored) std::reverse(line, line + width_);
  }
}

void ImageAugmenter::Apply(int64_t epoch, int64_t example, float* image) const {
  const Change change = Draw(epoch, example);
  if (change.down == 0 && change.right == 0 && !change.mirrored) return;
  const int64_t plane = height_ * width_;
  std::vector<float> before(plane);
  for (int64_t channel = 0; channel < channels_; ++channel) {
    float* pixels = image + channel * plane;
    std::copy_n(pixels, plane, before.data());
    ApplyToPlane(change, before.data(), pixels);
  }
}

}  // namespace rubato::worker
