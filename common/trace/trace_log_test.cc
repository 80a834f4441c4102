#include "common/trace/trace_log.h"

#include <gtest/gtest.h>

#include <limits>

#include "common/random.h"

namespace rubato {
namespace {

constexpr TraceKind kPlain = {"c", "plain"};
constexpr TraceKind kDetailed = {"c", "detailed", {"a", "b", "c", "d"}};
constexpr TraceKind kArrow = {"flow", "arrow"};

std::vector<TraceEntry> Read(const TraceLog& log) {
  std::vector<TraceEntry> entries;
  log.ForEach([&](const TraceEntry& entry) { entries.push_back(entry); });
  return entries;
}

void ExpectEqual(const TraceEntry& a, const TraceEntry& b) {
  EXPECT_EQ(a.type, b.type);
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.track.number, b.track.number);
  EXPECT_EQ(a.subject.number, b.subject.number);
  EXPECT_EQ(a.begin_ns, b.begin_ns);
  EXPECT_EQ(a.end_ns, b.end_ns);
  EXPECT_EQ(a.flow, b.flow);
  for (size_t i = 0; i < a.details.size(); ++i) {
    EXPECT_EQ(a.details[i].value, b.details[i].value);
    EXPECT_EQ(a.details[i].is_text, b.details[i].is_text);
  }
}

// A number whose size is as random as its bits.
uint64_t AnyNumber(Random* random) {
  const uint64_t bits = (uint64_t{random->Next32()} << 32) | random->Next32();
  return bits >> (random->Next32() % 64);
}

TraceEntry AnyEntry(Random* random) {
  TraceEntry entry;
  entry.track.number = static_cast<uint32_t>(AnyNumber(random));
  entry.subject.number = static_cast<uint32_t>(AnyNumber(random));
  entry.begin_ns = static_cast<int64_t>(AnyNumber(random));
  if (random->Next32() % 3 == 0) {
    entry.type = random->Next32() % 2 == 0 ? TraceEntry::Type::kFlowBegin : TraceEntry::Type::kFlowEnd;
    entry.kind = &kArrow;
    entry.flow = AnyNumber(random);
    return entry;
  }
  entry.kind = random->Next32() % 2 == 0 ? &kPlain : &kDetailed;
  entry.end_ns = static_cast<int64_t>(AnyNumber(random));
  if (entry.kind == &kPlain) return entry;
  for (TraceDetail& detail : entry.details) {
    detail.value = static_cast<int64_t>(AnyNumber(random));
    detail.is_text = random->Next32() % 2 == 0;
  }
  return entry;
}

TEST(TraceLogTest, GivesBackWhatCame) {
  Random random(1);
  TraceLog log;
  // The second time in the same memory, of which there are many blocks.
  for (int round = 0; round < 2; ++round) {
    log.Clear();
    EXPECT_EQ(log.size(), 0u);
    EXPECT_TRUE(Read(log).empty());
    std::vector<TraceEntry> entries;
    for (int i = 0; i < 20000; ++i) {
      entries.push_back(AnyEntry(&random));
      log.Append(entries.back());
    }
    const std::vector<TraceEntry> read = Read(log);
    ASSERT_EQ(read.size(), entries.size());
    EXPECT_EQ(log.size(), entries.size());
    for (size_t i = 0; i < entries.size(); ++i) ExpectEqual(read[i], entries[i]);
  }
}

TEST(TraceLogTest, TakesTheLargestNumbersThereAre) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();
  const std::vector<TraceEntry> entries = {
      {.kind = &kDetailed, .begin_ns = kMin, .end_ns = kMax, .details = {kMin, kMax, -1, 0}},
      {.kind = &kPlain,
       .track = {std::numeric_limits<uint32_t>::max()},
       .subject = {std::numeric_limits<uint32_t>::max()},
       .begin_ns = kMax,
       .end_ns = kMin},
      {.type = TraceEntry::Type::kFlowEnd, .kind = &kArrow, .flow = std::numeric_limits<uint64_t>::max()}};
  TraceLog log;
  for (const TraceEntry& entry : entries) log.Append(entry);
  const std::vector<TraceEntry> read = Read(log);
  ASSERT_EQ(read.size(), entries.size());
  for (size_t i = 0; i < entries.size(); ++i) ExpectEqual(read[i], entries[i]);
}

}  // namespace
}  // namespace rubato
