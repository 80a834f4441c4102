#include "worker/data/image_augmenter.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <vector>

namespace rubato::worker {
namespace {

const Shape kShape = {2, 4, 5};
constexpr int64_t kHeight = 4, kWidth = 5, kPlane = kHeight * kWidth;

ImageAugmenter Augmenter(uint32_t padding, bool flip, uint64_t seed = 1) {
  v1::ImageAugmentation config;
  config.set_crop_padding(padding);
  config.set_horizontal_flip(flip);
  return ImageAugmenter(config, seed, kShape);
}

// Pixels are 1, 2, ... so that zero is padding.
std::vector<float> Image() {
  std::vector<float> image(2 * kPlane);
  std::iota(image.begin(), image.end(), 1.0f);
  return image;
}

std::vector<float> Augmented(const ImageAugmenter& augmenter, int64_t epoch, int64_t example) {
  std::vector<float> image = Image();
  augmenter.Apply(epoch, example, image.data());
  return image;
}

// The image padded, cut out at (top, left) and mirrored, pixel by pixel.
std::vector<float> Expected(int64_t padding, int64_t top, int64_t left, bool mirrored) {
  const std::vector<float> image = Image();
  std::vector<float> expected;
  for (int64_t channel = 0; channel < 2; ++channel) {
    for (int64_t row = 0; row < kHeight; ++row) {
      for (int64_t column = 0; column < kWidth; ++column) {
        const int64_t y = row + top - padding;
        const int64_t x = (mirrored ? kWidth - 1 - column : column) + left - padding;
        const bool inside = y >= 0 && y < kHeight && x >= 0 && x < kWidth;
        expected.push_back(inside ? image[channel * kPlane + y * kWidth + x] : 0.0f);
      }
    }
  }
  return expected;
}

TEST(ImageAugmenterTest, EveryCropAndItsMirrorImageComesUpAboutAsOften) {
  const int64_t padding = 2;
  const ImageAugmenter augmenter = Augmenter(padding, true);
  std::map<std::vector<float>, int> counts;
  for (int64_t top = 0; top <= 2 * padding; ++top) {
    for (int64_t left = 0; left <= 2 * padding; ++left) {
      for (bool mirrored : {false, true}) counts[Expected(padding, top, left, mirrored)] = 0;
    }
  }
  ASSERT_EQ(counts.size(), 50u);
  const int draws = 20000;
  for (int i = 0; i < draws; ++i) {
    auto found = counts.find(Augmented(augmenter, i % 4, i / 4));
    ASSERT_NE(found, counts.end()) << "example " << i / 4 << " of epoch " << i % 4 << " is no crop of the image";
    ++found->second;
  }
  for (const auto& [image, count] : counts) EXPECT_NEAR(count, draws / 50, 120);  // Six standard deviations.
}

TEST(ImageAugmenterTest, DependsOnSeedEpochAndExampleAlone) {
  const ImageAugmenter augmenter = Augmenter(2, true), same = Augmenter(2, true), other = Augmenter(2, true, 2);
  int epochs = 0, examples = 0, seeds = 0;
  for (int64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(Augmented(augmenter, 3, i), Augmented(same, 3, i));
    epochs += Augmented(augmenter, 3, i) != Augmented(augmenter, 4, i);
    examples += Augmented(augmenter, 3, i) != Augmented(augmenter, 3, i + 1);
    seeds += Augmented(augmenter, 3, i) != Augmented(other, 3, i);
  }
  EXPECT_GT(epochs, 80);
  EXPECT_GT(examples, 80);
  EXPECT_GT(seeds, 80);
}

TEST(ImageAugmenterTest, DoesOnlyWhatIsAskedFor) {
  for (int64_t i = 0; i < 50; ++i) {
    EXPECT_EQ(Augmented(Augmenter(0, false), 0, i), Image());
    const std::vector<float> flipped = Augmented(Augmenter(0, true), 0, i);
    EXPECT_TRUE(flipped == Image() || flipped == Expected(0, 0, 0, true));
  }
}

// The whole image may leave the frame by one side and half of it by another.
TEST(ImageAugmenterTest, PaddingMayBeAsWideAsTheImage) {
  const ImageAugmenter augmenter = Augmenter(4, true);
  for (int64_t i = 0; i < 500; ++i) {
    const std::vector<float> image = Augmented(augmenter, 0, i);
    bool found = false;
    for (int64_t top = 0; top <= 8; ++top) {
      for (int64_t left = 0; left <= 8; ++left) {
        for (bool mirrored : {false, true}) found = found || image == Expected(4, top, left, mirrored);
      }
    }
    EXPECT_TRUE(found) << i;
  }
}

}  // namespace
}  // namespace rubato::worker
