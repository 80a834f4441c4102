#ifndef RUBATO_BENCH_BENCH_OUTPUT_H_
#define RUBATO_BENCH_BENCH_OUTPUT_H_

#include <string>
#include <utility>
#include <vector>

namespace rubato::bench {

// One measured case: its name, and its figures in the order in which they are shown. Units last in a figure's name
// ("seconds", "bytes"). Cases of one table have the same figures.
//
//   std::vector<BenchCase> cases = {{"sgd", {{"seconds", Median(times)}, {"gb_per_s", rate}}}};
//   PrintCases(cases);
struct BenchCase {
  std::string name;
  std::vector<std::pair<std::string, double>> values;
};

// A table of aligned columns, headed by the first case's figures. Empty for no cases.
std::string CasesTable(const std::vector<BenchCase>& cases);

// {"name":"sgd","seconds":0.0042,...}: one line without a line break. A figure that is not finite is null.
std::string CaseJson(const BenchCase& bench_case);

// The table, then one line of JSON per case, on standard output.
void PrintCases(const std::vector<BenchCase>& cases);

// The middle value, or the mean of the middle two; NaN for no values.
double Median(std::vector<double> values);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_BENCH_OUTPUT_H_
