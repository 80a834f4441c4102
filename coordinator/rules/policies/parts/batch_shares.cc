#include "coordinator/rules/policies/parts/batch_shares.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace rubato::coordinator {
namespace {

// In proportion, with what some cannot take for the others.
std::vector<double> Proportional(const std::vector<double>& rates, double total, double largest) {
  std::vector<double> parts(rates.size(), 0);
  for (;;) {
    double left = total, rates_left = 0;
    for (size_t i = 0; i < rates.size(); ++i) {
      if (parts[i] > 0) {
        left -= parts[i];
      } else {
        rates_left += rates[i];
      }
    }
    bool limited = false;
    for (size_t i = 0; i < rates.size(); ++i) {
      if (parts[i] > 0 || left * rates[i] <= largest * rates_left) continue;
      parts[i] = largest;
      limited = true;
    }
    if (limited) continue;
    for (size_t i = 0; i < rates.size(); ++i) {
      if (parts[i] == 0) parts[i] = left * rates[i] / rates_left;
    }
    return parts;
  }
}

}  // namespace

std::vector<uint32_t> BatchShares(const std::vector<double>& rates, int64_t total, int64_t largest) {
  const std::vector<double> parts = Proportional(rates, static_cast<double>(total), static_cast<double>(largest));
  std::vector<uint32_t> examples;
  for (double part : parts) examples.push_back(std::max<uint32_t>(static_cast<uint32_t>(part), 1));
  int64_t left = total - std::accumulate(examples.begin(), examples.end(), int64_t{0});
  // One at a time, to whoever is furthest from its part in the right direction.
  while (left != 0) {
    const int64_t step = left > 0 ? 1 : -1;
    size_t best = parts.size();
    double most = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (step > 0 ? examples[i] >= largest : examples[i] <= 1) continue;
      const double lacks = static_cast<double>(step) * (parts[i] - examples[i]);
      if (best == parts.size() || lacks > most) {
        best = i;
        most = lacks;
      }
    }
    examples[best] = static_cast<uint32_t>(examples[best] + step);
    left -= step;
  }
  return examples;
}

double LongestBatch(const std::vector<uint32_t>& examples, const std::vector<double>& rates) {
  double longest = 0;
  for (size_t i = 0; i < examples.size(); ++i) longest = std::max(longest, examples[i] / rates[i]);
  return longest;
}

}  // namespace rubato::coordinator
