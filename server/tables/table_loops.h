#ifndef RUBATO_SERVER_TABLES_TABLE_LOOPS_H_
#define RUBATO_SERVER_TABLES_TABLE_LOOPS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/optimizer/isa.h"
#include "server/tables/row_format.h"
#include "server/tables/row_rule.h"
#include "server/tables/table.h"

namespace rubato::server {

using TableLookup = void (*)(const Table& table, absl::Span<const uint64_t> hashes, float* weights);
using TableApply = void (*)(Table& table, const RowRule& rule, absl::Span<const uint64_t> hashes,
                            const float* gradients, float scale);

// The loops of Table::Lookup and Table::Apply for an instruction set and a format of the rows.
TableLookup TableLookupOn(Isa isa, const RowFormat& format);
TableApply TableApplyOn(Isa isa, const RowFormat& format);

}  // namespace rubato::server

#endif  // RUBATO_SERVER_TABLES_TABLE_LOOPS_H_
