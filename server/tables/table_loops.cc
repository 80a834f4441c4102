#include "server/tables/table_loops.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "server/tables/row_loops.h"

namespace rubato::server {
namespace {

// How many keys ahead the next memory access of each is begun.
constexpr size_t kAhead = 22;
// Of the keys on their way.
constexpr size_t kRing = 64;
static_assert(kRing > 2 * kAhead);

#define INLINE __attribute__((always_inline))

// A key on its way: the line of the index that it may be in, then its row.
struct Pending {
  const ShardIndex* index;
  const ShardIndex::Line* line;
  // Of the table, when the line was found.
  int64_t rows;
  uint32_t row;
};

// Calls find(i), then probe(i) kAhead keys later, then use(i) kAhead keys after that.
template <typename Find, typename Probe, typename Use>
RUBATO_KERNEL_BODY void InThreeStages(size_t count, const Find& find, const Probe& probe, const Use& use) {
  for (size_t i = 0; i < count + 2 * kAhead; ++i) {
    if (i < count) find(i);
    if (i >= kAhead && i - kAhead < count) probe(i - kAhead);
    if (i >= 2 * kAhead) use(i - 2 * kAhead);
  }
}

}  // namespace

// With access to a table's parts.
struct TableLoops {
  // kDimension 0: the table's.
  template <int kDimension>
  RUBATO_KERNEL_BODY static void Lookup(const Table& table, absl::Span<const uint64_t> hashes, float* weights) {
    const size_t dimension = kDimension > 0 ? kDimension : static_cast<size_t>(table.options_.dimension);
    Pending pending[kRing];
    const auto at = [&](size_t i) -> Pending& { return pending[i % kRing]; };
    const auto find = [&](size_t i) INLINE { Begin(table, hashes[i], at(i)); };
    const auto probe = [&](size_t i) INLINE {
      Pending& key = at(i);
      key.row = key.index->Find(hashes[i], key.line);
      Fetch(table, key.row, sizeof(float) * dimension);
    };
    const auto use = [&](size_t i) INLINE {
      float* out = weights + dimension * i;
      if (const uint32_t row = at(i).row; row != 0) [[likely]] {
        std::memcpy(out, table.RowAt(row), sizeof(float) * dimension);
      } else {
        table.InitialWeights(hashes[i], out);
      }
    };
    InThreeStages(hashes.size(), find, probe, use);
  }

  template <int kDimension, RowFormula kFormula>
  RUBATO_KERNEL_BODY static void Apply(Table& table, const RowRule& rule, absl::Span<const uint64_t> hashes,
                                       const float* gradients, float scale) {
    const int dimension = kDimension > 0 ? kDimension : table.options_.dimension;
    const size_t bytes = sizeof(float) * (dimension + StateSize(kFormula, dimension));
    Pending pending[kRing];
    const auto at = [&](size_t i) -> Pending& { return pending[i % kRing]; };
    const auto find = [&](size_t i) INLINE { Begin(table, hashes[i], at(i)); };
    const auto probe = [&](size_t i) INLINE {
      Pending& key = at(i);
      // Rows that were added since may have moved its line.
      if (key.rows != table.rows_) [[unlikely]]
        key.line = key.index->LineOf(hashes[i]);
      key.row = key.index->Find(hashes[i], key.line);
      if (key.row == 0) key.row = table.AddRow(hashes[i]);
      Fetch(table, key.row, bytes);
    };
    const auto use = [&](size_t i) INLINE {
      row_loops::UpdateRow<kFormula>(rule, gradients + static_cast<size_t>(dimension) * i, scale,
                                     table.RowAt(at(i).row), dimension);
    };
    InThreeStages(hashes.size(), find, probe, use);
  }

 private:
  RUBATO_KERNEL_BODY static void Begin(const Table& table, uint64_t hash, Pending& pending) {
    pending.index = &table.ShardOf(hash).index;
    pending.line = pending.index->LineOf(hash);
    pending.rows = table.rows_;
    __builtin_prefetch(pending.line);
  }
  RUBATO_KERNEL_BODY static void Fetch(const Table& table, uint32_t row, size_t bytes) {
    const char* begin = reinterpret_cast<const char*>(table.RowAt(row));
    for (size_t line = 0; line < bytes; line += TableMemory::kLine) __builtin_prefetch(begin + line);
  }
};

namespace {

template <int kDimension>
struct LookupLoop {
  static void Baseline(const Table& table, absl::Span<const uint64_t> hashes, float* weights) {
    TableLoops::Lookup<kDimension>(table, hashes, weights);
  }
  RUBATO_TARGET_AVX2 static void Avx2(const Table& table, absl::Span<const uint64_t> hashes, float* weights) {
    TableLoops::Lookup<kDimension>(table, hashes, weights);
  }
};

template <int kDimension, RowFormula kFormula>
struct ApplyLoop {
  static void Baseline(Table& table, const RowRule& rule, absl::Span<const uint64_t> hashes, const float* gradients,
                       float scale) {
    TableLoops::Apply<kDimension, kFormula>(table, rule, hashes, gradients, scale);
  }
  RUBATO_TARGET_AVX2 static void Avx2(Table& table, const RowRule& rule, absl::Span<const uint64_t> hashes,
                                      const float* gradients, float scale) {
    TableLoops::Apply<kDimension, kFormula>(table, rule, hashes, gradients, scale);
  }
};

// Dimensions that the compiler knows have loops of nothing but vectors.
template <typename Visitor>
auto WithDimension(int dimension, const Visitor& visitor) {
  switch (dimension) {
    case 8:
      return visitor.template operator()<8>();
    case 16:
      return visitor.template operator()<16>();
    case 32:
      return visitor.template operator()<32>();
    case 64:
      return visitor.template operator()<64>();
    default:
      return visitor.template operator()<0>();
  }
}

template <typename Loop>
auto Pick(Isa isa) {
  return isa >= Isa::kAvx2 ? Loop::Avx2 : Loop::Baseline;
}

}  // namespace

TableLookup TableLookupOn(Isa isa, int dimension) {
  return WithDimension(dimension, [&]<int kDimension>() -> TableLookup { return Pick<LookupLoop<kDimension>>(isa); });
}

TableApply TableApplyOn(Isa isa, int dimension, RowFormula formula) {
  return WithDimension(dimension, [&]<int kDimension>() -> TableApply {
    switch (formula) {
      case RowFormula::kSgd:
        return Pick<ApplyLoop<kDimension, RowFormula::kSgd>>(isa);
      case RowFormula::kAdaGrad:
        return Pick<ApplyLoop<kDimension, RowFormula::kAdaGrad>>(isa);
      case RowFormula::kRowWiseAdaGrad:
        return Pick<ApplyLoop<kDimension, RowFormula::kRowWiseAdaGrad>>(isa);
      case RowFormula::kLazyAdam:
        return Pick<ApplyLoop<kDimension, RowFormula::kLazyAdam>>(isa);
      case RowFormula::kFtrl:
        return Pick<ApplyLoop<kDimension, RowFormula::kFtrl>>(isa);
    }
    return nullptr;
  });
}

}  // namespace rubato::server
