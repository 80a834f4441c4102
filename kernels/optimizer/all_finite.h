#ifndef RUBATO_KERNELS_OPTIMIZER_ALL_FINITE_H_
#define RUBATO_KERNELS_OPTIMIZER_ALL_FINITE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "common/byte_span.h"
#include "kernels/optimizer/isa.h"

namespace rubato {

// Whether none of the n float32 at `data`, of any alignment, is infinite or not a number. True for n = 0.
bool AllFinite(const void* data, int64_t n);

// The same for the elements of encoded bytes that were cut into pieces, also within elements. The pieces' lengths add
// up to whole elements; bytes of an incomplete one at the end are not looked at.
bool AllFinite(absl::Span<const ByteSpan> pieces);

// On a given instruction set, which this processor supports; for tests.
bool AllFiniteOn(Isa isa, const void* data, int64_t n);

}  // namespace rubato

#endif  // RUBATO_KERNELS_OPTIMIZER_ALL_FINITE_H_
