#ifndef RUBATO_BENCH_LOOP_BENCH_H_
#define RUBATO_BENCH_LOOP_BENCH_H_

#include <functional>
#include <vector>

#include "kernels/optimizer/isa.h"

namespace rubato::bench {

// A program that measures loops on one core, for each of several instruction sets.
struct LoopBench {
  const char* name;         // Of the program; stands before its errors.
  const char* description;  // For --help.
  int rounds;               // Unless --rounds says otherwise.
  Isa best;                 // What --isa=best means; this processor supports it.
  std::function<void(const std::vector<Isa>& isas, int rounds)> run;
};

// The program's main: reads --isa and --rounds, binds the thread to one core and runs. Returns the exit status: 0, or
// not 0, after a message on standard error, if a flag is bad, this processor does not support the instruction set
// that was asked for, or the system does not let the thread be bound.
int LoopBenchMain(int argc, char** argv, const LoopBench& bench);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_LOOP_BENCH_H_
