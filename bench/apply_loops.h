#ifndef RUBATO_BENCH_APPLY_LOOPS_H_
#define RUBATO_BENCH_APPLY_LOOPS_H_

#include <cstdint>

#include "kernels/optimizer/isa.h"

namespace rubato::bench {

// What a case of apply_bench reads and writes: `gradients` arrays are read, the weights read and written (to another
// array, if they are apart), `slots` arrays read and written.
struct Streams {
  const float* gradients[8];
  int gradient_count;
  float* slots[2];
  int slot_count;
  const float* weights_in;
  float* weights_out;
  int64_t n;
};

// The limit: a plain loop over the same streams with next to no arithmetic, on an instruction set which this processor
// supports. `factor` is what gradients are multiplied by.
void MoveStreams(Isa isa, const Streams& streams, float factor);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_APPLY_LOOPS_H_
