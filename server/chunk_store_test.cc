#include "server/chunk_store.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/optimizer/encoded_gradient.h"
#include "server/rules/push_hyperparameters.h"
#include "server/rules/testing/builders.h"

namespace rubato::server {
namespace {

constexpr int64_t kLength = 100;
constexpr int64_t kArray = kLength * sizeof(float);

class ChunkStoreTest : public testing::Test {
 protected:
  ChunkStoreTest() {
    config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::SGD);
    config_.mutable_optimizer()->set_learning_rate(1);
    config_.mutable_optimizer()->set_beta1(0.9);
    config_.mutable_optimizer()->set_beta2(0.999);
    config_.mutable_optimizer()->set_epsilon(1e-8);
    model_.tensors.push_back({"layer.weight", {2, kLength}, v1::HE_NORMAL, false, kLength, 2, true});
    for (int i = 0; i < 2; ++i) {
      v1::ChunkPlacement* chunk = job_.add_chunks();
      chunk->set_offset(i * kLength);
      chunk->set_length(kLength);
    }
  }

  ChunkStore Make() { return ChunkStore(config_, model_, job_, {0, 1}, FloatBuffer::Allocate, slots_); }

  static Contribution From(uint32_t worker, uint64_t examples, const std::vector<float>& gradient) {
    return From(HeaderOf(Worker(worker), 1, 0), examples, gradient);
  }
  static Contribution From(PushHeader header, uint64_t examples, const std::vector<float>& gradient) {
    Contribution contribution = PushOf(std::move(header), examples);
    struct Sent {
      ByteSpan piece;
      EncodedGradient gradient;
    };
    auto sent = std::make_shared<Sent>();
    sent->piece = BytesOf(gradient.data(), static_cast<int64_t>(gradient.size()));
    sent->gradient.pieces = {&sent->piece, 1};
    contribution.gradient = {sent, &sent->gradient};
    return contribution;
  }

  v1::JobConfig config_;
  ModelSpec model_;
  v1::JobDescription job_;
  const std::shared_ptr<SlotPool> slots_ = SlotPool::Create();
};

TEST_F(ChunkStoreTest, AppliesTheExampleWeightedMean) {
  ChunkStore store = Make();
  const float before = store.Get(0).weights->data()[7];
  std::vector<float> ones(kLength, 1.0f), fives(kLength, 5.0f);
  store.Apply({0, {From(0, 3, ones), From(1, 1, fives)}, false, 0, 1.0});
  EXPECT_FLOAT_EQ(store.Get(0).weights->data()[7], before - 2.0f);
}

TEST_F(ChunkStoreTest, ScalesTheLearningRateByThePlan) {
  ChunkStore store = Make();
  const float before = store.Get(1).weights->data()[0];
  std::vector<float> ones(kLength, 1.0f);
  store.Apply({1, {From(0, 1, ones)}, false, 0, 0.5});
  EXPECT_FLOAT_EQ(store.Get(1).weights->data()[0], before - 0.5f);
}

TEST_F(ChunkStoreTest, ThePlansMomentumTakesThePlaceOfTheConfigs) {
  config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::MOMENTUM);
  config_.mutable_optimizer()->set_momentum(0.5);
  ChunkStore store = Make();
  std::vector<float> ones(kLength, 1.0f);
  store.Apply({.chunk = 0, .contributions = {From(0, 1, ones)}});
  float before = store.Get(0).weights->data()[3];
  store.Apply({.chunk = 0, .contributions = {From(0, 1, ones)}, .momentum = 0.25});
  EXPECT_FLOAT_EQ(store.Get(0).weights->data()[3], before - 1.25f) << "with the velocity as it was";
  before = store.Get(0).weights->data()[3];
  store.Apply({.chunk = 0, .contributions = {From(0, 1, ones)}});
  EXPECT_FLOAT_EQ(store.Get(0).weights->data()[3], before - 1.625f);
}

TEST_F(ChunkStoreTest, LarsAndLambUpdateAWholeTensorAtOnce) {
  for (const auto algorithm : {v1::OptimizerConfig::LARS, v1::OptimizerConfig::LAMB}) {
    config_.mutable_optimizer()->set_algorithm(algorithm);
    config_.mutable_optimizer()->set_momentum(0);
    config_.mutable_optimizer()->set_learning_rate(0.5);
    config_.mutable_optimizer()->set_trust_coefficient(1);
    ChunkStore store = Make();
    std::vector<float> before(store.Get(0).weights->data(), store.Get(0).weights->data() + kLength);
    double norm = 0;
    for (const float w : before) norm += static_cast<double>(w) * w;
    std::vector<float> ones(kLength, 1.0f);
    store.Apply({.chunk = 0, .contributions = {From(0, 1, ones), From(1, 1, ones)}});
    // A step as long as half of the weights, in the gradient's direction.
    const float expected = 0.5f * static_cast<float>(std::sqrt(norm / kLength));
    for (int64_t i = 0; i < kLength; ++i) EXPECT_NEAR(store.Get(0).weights->data()[i], before[i] - expected, 1e-5);
  }
}

TEST_F(ChunkStoreTest, WithLocalSgdDeltasAreAppliedUnscaledBecauseWorkersApplyTheLearningRateScale) {
  config_.mutable_consistency()->set_sync_every(2);
  ChunkStore store = Make();
  const float before = store.Get(1).weights->data()[0];
  std::vector<float> ones(kLength, 1.0f);
  store.Apply({1, {From(0, 1, ones)}, false, 0, 0.5});
  EXPECT_FLOAT_EQ(store.Get(1).weights->data()[0], before - 1.0f);
}

// The rate is for four batches. That of one worker alone, the others being out of data, counts as in ASYNC.
TEST_F(ChunkStoreTest, TheLearningRateIsReducedByWorkersWithoutExamples) {
  std::vector<float> ones(kLength, 1.0f);
  const std::vector<Contribution> last = {From(0, 0, {}), From(1, 0, {}), From(2, 3, ones), From(3, 0, {})};
  ChunkStore sgd = Make();
  float before = sgd.Get(0).weights->data()[7];
  sgd.Apply({0, last, false, 0, 0.5});
  EXPECT_FLOAT_EQ(sgd.Get(0).weights->data()[7], before - 0.125f);

  config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::ADAM);
  ChunkStore adam = Make();
  before = adam.Get(0).weights->data()[7];
  adam.Apply({0, last, false, 0, 0.5});
  EXPECT_NEAR(adam.Get(0).weights->data()[7], before - 0.25f, 1e-5)
      << "the root, for it divides by the gradient's size";

  config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::SGD);
  config_.mutable_consistency()->set_sync_every(2);
  ChunkStore local = Make();
  before = local.Get(0).weights->data()[7];
  local.Apply({0, last, false, 0, 0.5});
  EXPECT_FLOAT_EQ(local.Get(0).weights->data()[7], before - 0.25f) << "of the move, which has the plan's factor";
}

TEST_F(ChunkStoreTest, EighthBatchesSayHowGradientsDiffer) {
  config_.mutable_training()->set_batch_size(4);
  ChunkStore store = Make();
  std::vector<float> ones(kLength, 1.0f), threes(kLength, 3.0f);
  for (int64_t step = 0; step < 16; ++step) {
    const std::vector<Contribution> pushed = {From(HeaderOf(Worker(0), 1, step), 4, ones),
                                              From(HeaderOf(Worker(1), 1, step), 4, threes)};
    store.Apply({0, pushed});
    store.Apply({1, {pushed.front()}});
  }
  EXPECT_EQ(store.gradient_moments().updates(), 2) << "of chunk 0, to which two have pushed, in steps 0 and 8";
  EXPECT_DOUBLE_EQ(store.gradient_moments().mean_square(), 2 * 4 * kLength);
  // The two differ by 2 in each element.
  EXPECT_DOUBLE_EQ(store.gradient_moments().variance(), 2 * 4 * 2 * kLength);
  EXPECT_DOUBLE_EQ(store.gradient_moments().signal(), 2 * (4 - 1) * kLength);
}

TEST_F(ChunkStoreTest, LeavesWeightsAloneWithoutExamples) {
  ChunkStore store = Make();
  FloatBuffer::Ptr before = store.Get(0).weights;
  store.Apply({0, {From(0, 0, {})}, false, 0, 1.0});
  EXPECT_EQ(store.Get(0).weights, before);
  EXPECT_EQ(store.Get(0).updates, 0);
}

// A worker that is out of data contributes nothing and is at epoch 0; the schedule does not begin again with it.
TEST_F(ChunkStoreTest, TheScheduleIsWhereTheExamplesAre) {
  config_.mutable_optimizer()->mutable_schedule()->set_unit(v1::LearningRateSchedule::EPOCHS);
  config_.mutable_optimizer()->mutable_schedule()->mutable_polynomial()->set_length(4);
  config_.mutable_optimizer()->mutable_schedule()->mutable_polynomial()->set_power(1);
  ChunkStore store = Make();
  const float before = store.Get(0).weights->data()[7];
  std::vector<float> ones(kLength, 1.0f);
  PushHeader late = HeaderOf(Worker(1), 1, 0);
  late.epoch = 3;
  store.Apply({0, {From(0, 0, {}), From(late, 4, ones)}, false, 0, 1.0});
  EXPECT_FLOAT_EQ(store.Get(0).weights->data()[7], before - 0.125f)
      << "a quarter by the schedule, for one of two batches";
}

TEST_F(ChunkStoreTest, NeverWritesABufferThatSomebodyReads) {
  ChunkStore store = Make();
  FloatBuffer::Ptr reader = store.Get(0).weights;
  const float before = reader->data()[0];
  std::vector<float> ones(kLength, 1.0f);
  store.Apply({0, {From(0, 1, ones)}, false, 0, 1.0});
  EXPECT_EQ(reader->data()[0], before);
  EXPECT_FLOAT_EQ(store.Get(0).weights->data()[0], before - 1.0f);
}

TEST_F(ChunkStoreTest, ReusesBuffersThatNobodyReadsAnyMore) {
  ChunkStore store = Make();
  std::vector<float> ones(kLength, 1.0f);
  for (int i = 0; i < 10; ++i) {
    FloatBuffer::Ptr reader = store.Get(0).weights;
    store.Apply({0, {From(0, 1, ones)}, false, 0, 1.0});
  }
  EXPECT_EQ(store.Get(0).spares.size(), 1u);
}

TEST_F(ChunkStoreTest, NeverWritesSlotsThatSomebodyKeeps) {
  config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::ADAM);
  ChunkStore store = Make();
  std::vector<float> ones(kLength, 1.0f);
  store.Apply({0, {From(0, 1, ones)}, false, 0, 1.0});
  const ChunkSnapshot kept = store.Keep(0);
  ASSERT_EQ(kept.slots.size(), 2u);
  EXPECT_EQ(kept.record.updates(), 1);
  const std::vector<float> weights(kept.weights->data(), kept.weights->data() + kLength);
  const float momentum = kept.slots[0]->data()[5], square = kept.slots[1]->data()[5];
  const int64_t bytes = store.memory_bytes(), slot_bytes = slots_->bytes();
  store.Apply({0, {From(0, 1, ones)}, false, 1, 1.0});
  EXPECT_EQ(std::vector<float>(kept.weights->data(), kept.weights->data() + kLength), weights);
  EXPECT_EQ(kept.slots[0]->data()[5], momentum);
  EXPECT_EQ(kept.slots[1]->data()[5], square);
  EXPECT_GT(store.Get(0).slots[0]->data()[5], momentum);
  EXPECT_GT(store.Get(0).slots[1]->data()[5], square);
  EXPECT_EQ(store.memory_bytes(), bytes + kArray);
  EXPECT_EQ(slots_->bytes(), slot_bytes + 2 * kArray);
}

TEST_F(ChunkStoreTest, SlotsThatMoveHaveAChecksumForTheirCheckpoint) {
  config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::ADAM);
  ChunkStore store = Make();
  std::vector<float> ones(kLength, 1.0f);
  store.Apply({0, {From(0, 1, ones)}, false, 0, 1.0});
  const ChunkSnapshot kept = store.Keep(0);
  EXPECT_EQ(kept.slots[1]->crc32(), std::nullopt);
  store.Apply({0, {From(0, 1, ones)}, false, 1, 1.0});
  for (const FloatBuffer::Ptr& slot : kept.slots) {
    EXPECT_EQ(slot->crc32(), crc32(0, reinterpret_cast<const Bytef*>(slot->data()), kLength * sizeof(float)));
  }
  EXPECT_EQ(store.Get(0).slots[1]->crc32(), std::nullopt);
}

TEST_F(ChunkStoreTest, UpdatesAfterASnapshotHaveTheBitsOfThoseWithoutOne) {
  config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::ADAM);
  ChunkStore kept = Make(), plain = Make();
  std::vector<float> ones(kLength, 1.0f);
  std::vector<ChunkSnapshot> snapshots;
  for (int i = 0; i < 4; ++i) {
    if (i % 2 == 1) snapshots.push_back(kept.Keep(0));
    for (ChunkStore* store : {&kept, &plain}) store->Apply({0, {From(0, 1, ones)}, false, i, 1.0});
  }
  for (int64_t i = 0; i < kLength; ++i) {
    ASSERT_EQ(kept.Get(0).weights->data()[i], plain.Get(0).weights->data()[i]);
    ASSERT_EQ(kept.Get(0).slots[1]->data()[i], plain.Get(0).slots[1]->data()[i]);
  }
}

TEST_F(ChunkStoreTest, ReusesSlotsThatNobodyKeepsAnyMore) {
  config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::ADAM);
  ChunkStore store = Make();
  std::vector<float> ones(kLength, 1.0f);
  for (int i = 0; i < 10; ++i) {
    const ChunkSnapshot kept = store.Keep(0);
    store.Apply({0, {From(0, 1, ones)}, false, i, 1.0});
  }
  EXPECT_EQ(slots_->bytes(), 2 * kArray * 2 + 2 * kArray) << "two slots of two chunks, and those of one again";
}

TEST_F(ChunkStoreTest, AJobWithCheckpointsHasMemoryForThemFromItsStart) {
  config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::ADAM);
  const int64_t without = Make().memory_bytes(), slots_without = slots_->bytes();
  config_.mutable_checkpoint()->set_every_steps(1);
  const auto few = SlotPool::Create();
  EXPECT_EQ(ChunkStore(config_, model_, job_, {0, 1}, FloatBuffer::Allocate, few).memory_bytes(), 2 * without);
  EXPECT_EQ(few->bytes(), 2 * slots_without);
  // For half of its slots if they are many: 3 of 6 large arrays, and 2 of 2 small ones.
  v1::JobDescription large;
  for (int64_t length : {3 << 20, 3 << 20, 3 << 20, 1 << 10}) large.add_chunks()->set_length(length);
  const auto many = SlotPool::Create();
  const ChunkStore store(config_, model_, large, {0, 1, 2, 3}, FloatBuffer::Allocate, many);
  EXPECT_EQ(many->bytes(), (6 + 3) * (12 << 20) + (2 + 2) * (4 << 10));
}

TEST_F(ChunkStoreTest, EncodesAVersionOnce) {
  config_.mutable_compression()->mutable_pull()->set_codec(v1::BF16);
  ChunkStore store = Make();
  ChunkStore::Wire first = store.ForWire(0, 1);
  EXPECT_EQ(first.codec, v1::BF16);
  EXPECT_EQ(first.bytes, 2 * kLength);
  EXPECT_EQ(store.ForWire(0, 1).buffer, first.buffer);
  EXPECT_NE(store.ForWire(0, 2).buffer, first.buffer);  // Still held by a reader.
}

TEST_F(ChunkStoreTest, ReusesEncodedBuffersThatNobodyReadsAnyMore) {
  config_.mutable_compression()->mutable_pull()->set_codec(v1::BF16);
  int allocated = 0;
  ChunkStore store(config_, model_, job_, {0}, [&allocated](int64_t size) {
    ++allocated;
    return FloatBuffer::Allocate(size);
  });
  FloatBuffer::Ptr reader = store.ForWire(0, 0).buffer;
  for (int version = 1; version < 10; ++version) reader = store.ForWire(0, version).buffer;
  EXPECT_EQ(allocated, 1 + 2);  // The weights; what is read, and what is encoded meanwhile.
}

TEST_F(ChunkStoreTest, InitialisesAChunkAsAPartOfItsTensor) {
  ChunkStore parts = Make();
  v1::JobDescription whole;
  whole.add_chunks()->set_length(2 * kLength);
  ChunkStore one(config_, model_, whole, {0});
  for (int64_t i = 0; i < kLength; ++i) {
    EXPECT_EQ(one.Get(0).weights->data()[i], parts.Get(0).weights->data()[i]);
    EXPECT_EQ(one.Get(0).weights->data()[kLength + i], parts.Get(1).weights->data()[i]);
  }
}

// Pushes of a client with a learning rate for group 0.
PushHeader WithRate(uint32_t worker, const v1::JobConfig& config, double rate) {
  v1::PushPull push;
  push.add_groups()->set_learning_rate(rate);
  auto read = PushHyperparameters::Read(push.groups(), {.optimizer = &config.optimizer(), .groups = 1});
  EXPECT_TRUE(read.ok()) << read.status();
  PushHeader header = HeaderOf(Worker(worker), 1, 0);
  header.hyperparameters = *read;
  return header;
}

TEST_F(ChunkStoreTest, PushedHyperparametersAreThoseOfTheFirstThatNamesTheGroup) {
  ChunkStore store = Make();
  const float before = store.Get(0).weights->data()[0];
  std::vector<float> ones(kLength, 1.0f);
  std::vector<Contribution> pushes = {From(0, 1, ones), From(WithRate(1, config_, 0.25), 1, ones),
                                      From(WithRate(2, config_, 0.5), 1, ones)};
  EXPECT_TRUE(store.Apply({0, pushes, false, 0, 2.0}));  // With the plan's factor.
  EXPECT_FLOAT_EQ(store.Get(0).weights->data()[0], before - 0.5f);
  pushes[2] = From(WithRate(2, config_, 0.25), 1, ones);
  EXPECT_FALSE(store.Apply({0, pushes, false, 0, 2.0}));
}

TEST_F(ChunkStoreTest, AChunkTakesItsInitialWeightsInPieces) {
  ChunkStore store = Make();
  std::vector<float> values(kLength);
  for (int64_t i = 0; i < kLength; ++i) values[i] = static_cast<float>(i);
  const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
  const ByteSpan pieces[] = {{bytes, 7}, {bytes + 7, kLength * sizeof(float) - 7}};
  store.Assign(1, {.pieces = pieces});
  for (int64_t i = 0; i < kLength; ++i) EXPECT_EQ(store.Get(1).weights->data()[i], values[i]);
}

TEST_F(ChunkStoreTest, AMeanOfNothingIsZero) {
  config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::MEAN);
  ChunkStore store = Make();
  std::vector<float> ones(kLength, 1.0f), fives(kLength, 5.0f);
  store.Apply({0, {From(0, 3, ones), From(1, 1, fives)}, false, 0, 1.0});
  EXPECT_EQ(store.Get(0).weights->data()[7], 2.0f);
  const Contribution absent = PushOf(0, 1, 1, /*examples=*/0);
  store.Apply({0, {absent, absent}, false, 1, 1.0});
  EXPECT_EQ(store.Get(0).weights->data()[7], 0.0f);
}

}  // namespace
}  // namespace rubato::server
