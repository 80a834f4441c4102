#ifndef RUBATO_BENCH_STEP_CPU_TRANSFER_H_
#define RUBATO_BENCH_STEP_CPU_TRANSFER_H_

namespace rubato::bench {

// How fast one CPU overwrites 64 KiB that another has just read, in GB/s: what is between their caches. Two CPUs of one
// L3 cache have about four times the rate of two that have none in common, and a host may move a virtual machine's CPUs
// from the one to the other at any time. The median of 120 times, some 10 ms in all. NaN if it may not run on both.
double OverwriteGbPerS(int writer, int reader);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_STEP_CPU_TRANSFER_H_
