#include "server/tables/table_loops.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "common/mutants.h"
#include "server/tables/row_loops.h"

namespace rubato::server {
namespace {

// How many keys ahead the next memory access of each is begun; and after how many of them those that are not in their
// first line of the index are looked for in the next one.
constexpr size_t kAhead = 22;
constexpr size_t kSettleAfter = 11;
// Of the keys on their way.
constexpr size_t kRing = 64;
static_assert(kRing > 2 * kAhead);

#define INLINE __attribute__((always_inline))

// A key on its way: the line of the index that it may be in, then its row, if it is known.
struct Pending {
  const ShardIndex* index;
  const ShardIndex::Line* line;
  // Of the table, when the line was found.
  int64_t rows;
  uint32_t row;
};

// Calls find(i), then probe(i) kAhead keys later, then settle(i) kSettleAfter keys after that, then use(i) kAhead keys
// after probe(i).
template <typename Find, typename Probe, typename Settle, typename Use>
RUBATO_KERNEL_BODY void InStages(size_t count, const Find& find, const Probe& probe, const Settle& settle,
                                 const Use& use) {
  constexpr size_t kSettle = kAhead + kSettleAfter;
  for (size_t i = 0; i < count + 2 * kAhead; ++i) {
    if (i < count) find(i);
    if (i >= kAhead && i - kAhead < count) probe(i - kAhead);
    if (i >= kSettle && i - kSettle < count) settle(i - kSettle);
    if (i >= 2 * kAhead) use(i - 2 * kAhead);
  }
}

}  // namespace

// With access to a table's parts.
struct TableLoops {
  // kDimension 0: the table's. Weight: what its format says.
  template <int kDimension, typename Weight>
  RUBATO_KERNEL_BODY static void Lookup(const Table& table, absl::Span<const uint64_t> hashes, float* weights) {
    const size_t dimension = kDimension > 0 ? kDimension : static_cast<size_t>(table.format_.dimension);
    const size_t bytes = sizeof(Weight) * dimension;
    Pending pending[kRing];
    const auto at = [&](size_t i) -> Pending& { return pending[i % kRing]; };
    const auto find = [&](size_t i) INLINE { Begin(table, hashes[i], at(i)); };
    const auto probe = [&](size_t i) INLINE { Probe(table, hashes[i], bytes, at(i)); };
    const auto settle = [&](size_t i) INLINE {
      Pending& key = at(i);
      if (key.row != 0) [[likely]]
        return;
      key.row = key.index->Find(hashes[i], key.line);
      Fetch(table, key.row, bytes);
    };
    const auto use = [&](size_t i) INLINE {
      float* const out = weights + dimension * i;
      const bool is_none = RUBATO_MUTANT(kKeyZeroIsNone) && table.hash_.KeyOf(hashes[i]) == 0;
      if (const uint32_t row = at(i).row; row != 0 && !is_none) [[likely]] {
        row_loops::LoadWeights(reinterpret_cast<const Weight*>(table.RowAt(row)), dimension, out);
      } else {
        table.InitialWeights(hashes[i], out);
        if (RUBATO_MUTANT(kMissingRowReadsZero)) std::fill_n(out, dimension, 0.0f);
      }
    };
    InStages(hashes.size(), find, probe, settle, use);
  }

  template <int kDimension, RowFormula kFormula, typename Weight>
  RUBATO_KERNEL_BODY static void Apply(Table& table, const RowRule& rule, absl::Span<const uint64_t> hashes,
                                       const float* gradients, float scale) {
    const int dimension = kDimension > 0 ? kDimension : table.format_.dimension;
    const size_t bytes = StateOffset<Weight>(dimension) + sizeof(float) * StateSize(kFormula, dimension);
    const bool notes_steps = table.removes();
    Pending pending[kRing];
    const auto at = [&](size_t i) -> Pending& { return pending[i % kRing]; };
    const auto find = [&](size_t i) INLINE { Begin(table, hashes[i], at(i)); };
    const auto probe = [&](size_t i) INLINE {
      LookAgain(table, hashes[i], at(i));
      Probe(table, hashes[i], bytes, at(i));
      if (notes_steps && at(i).row != 0) table.NoteStep(hashes[i], rule.step, at(i).line);
    };
    const auto settle = [&](size_t i) INLINE {
      Pending& key = at(i);
      if (key.row != 0) [[likely]]
        return;
      LookAgain(table, hashes[i], key);
      key.row = key.index->Find(hashes[i], key.line);
      if (key.row == 0) {
        key.row = table.Admit(hashes[i], rule.step);
      } else if (notes_steps) {
        table.NoteStep(hashes[i], rule.step, key.line);
      }
      Fetch(table, key.row, bytes);
    };
    const auto use = [&](size_t i) INLINE {
      if (at(i).row == 0) return;
      row_loops::UpdateRow<kFormula, Weight>(rule, gradients + static_cast<size_t>(dimension) * i, scale,
                                             row_loops::DrawOf(hashes[i], rule.step), table.RowAt(at(i).row),
                                             dimension);
    };
    InStages(hashes.size(), find, probe, settle, use);
  }

 private:
  RUBATO_KERNEL_BODY static void Begin(const Table& table, uint64_t hash, Pending& pending) {
    pending.index = &table.ShardOf(hash).index;
    pending.line = pending.index->LineOf(hash);
    pending.rows = table.rows_;
    __builtin_prefetch(pending.line);
  }
  // Rows that were added since the key's line was found may have moved it.
  RUBATO_KERNEL_BODY static void LookAgain(const Table& table, uint64_t hash, Pending& pending) {
    if (pending.rows == table.rows_) [[likely]]
      return;
    pending.line = pending.index->LineOf(hash);
    pending.rows = table.rows_;
  }
  // The row, as far as one line says, which has been fetched: waiting for the next one would hold up all others.
  RUBATO_KERNEL_BODY static void Probe(const Table& table, uint64_t hash, size_t bytes, Pending& pending) {
    pending.row = ShardIndex::RowIn(*pending.line, hash);
    if (pending.row != 0) [[likely]] {
      Fetch(table, pending.row, bytes);
    } else if (ShardIndex::IsFull(*pending.line)) {
      __builtin_prefetch(pending.line + 1);
    }
  }
  RUBATO_KERNEL_BODY static void Fetch(const Table& table, uint32_t row, size_t bytes) {
    const char* begin = table.RowAt(row);
    for (size_t line = 0; line < bytes; line += TableMemory::kLine) __builtin_prefetch(begin + line);
  }
};

namespace {

template <int kDimension, typename Weight>
struct LookupLoop {
  static void Baseline(const Table& table, absl::Span<const uint64_t> hashes, float* weights) {
    TableLoops::Lookup<kDimension, Weight>(table, hashes, weights);
  }
  RUBATO_TARGET_AVX2 static void Avx2(const Table& table, absl::Span<const uint64_t> hashes, float* weights) {
    TableLoops::Lookup<kDimension, Weight>(table, hashes, weights);
  }
};

template <int kDimension, RowFormula kFormula, typename Weight>
struct ApplyLoop {
  static void Baseline(Table& table, const RowRule& rule, absl::Span<const uint64_t> hashes, const float* gradients,
                       float scale) {
    TableLoops::Apply<kDimension, kFormula, Weight>(table, rule, hashes, gradients, scale);
  }
  RUBATO_TARGET_AVX2 static void Avx2(Table& table, const RowRule& rule, absl::Span<const uint64_t> hashes,
                                      const float* gradients, float scale) {
    TableLoops::Apply<kDimension, kFormula, Weight>(table, rule, hashes, gradients, scale);
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

template <typename Weight>
TableLookup LookupOf(Isa isa, int dimension) {
  return WithDimension(dimension,
                       [&]<int kDimension>() -> TableLookup { return Pick<LookupLoop<kDimension, Weight>>(isa); });
}

template <typename Weight>
TableApply ApplyOf(Isa isa, int dimension, RowFormula formula) {
  return WithDimension(dimension, [&]<int kDimension>() -> TableApply {
    switch (formula) {
      case RowFormula::kSgd:
        return Pick<ApplyLoop<kDimension, RowFormula::kSgd, Weight>>(isa);
      case RowFormula::kAdaGrad:
        return Pick<ApplyLoop<kDimension, RowFormula::kAdaGrad, Weight>>(isa);
      case RowFormula::kRowWiseAdaGrad:
        return Pick<ApplyLoop<kDimension, RowFormula::kRowWiseAdaGrad, Weight>>(isa);
      case RowFormula::kLazyAdam:
        return Pick<ApplyLoop<kDimension, RowFormula::kLazyAdam, Weight>>(isa);
      case RowFormula::kFtrl:
        return Pick<ApplyLoop<kDimension, RowFormula::kFtrl, Weight>>(isa);
    }
    return nullptr;
  });
}

}  // namespace

TableLookup TableLookupOn(Isa isa, const RowFormat& format) {
  return format.is_bf16 ? LookupOf<uint16_t>(isa, format.dimension) : LookupOf<float>(isa, format.dimension);
}

TableApply TableApplyOn(Isa isa, const RowFormat& format) {
  return format.is_bf16 ? ApplyOf<uint16_t>(isa, format.dimension, format.formula)
                        : ApplyOf<float>(isa, format.dimension, format.formula);
}

}  // namespace rubato::server
