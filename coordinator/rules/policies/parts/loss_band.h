#ifndef RUBATO_COORDINATOR_RULES_POLICIES_PARTS_LOSS_BAND_H_
#define RUBATO_COORDINATOR_RULES_POLICIES_PARTS_LOSS_BAND_H_

#include <deque>
#include <optional>

namespace rubato::coordinator {

// Whether the training loss has risen since a change of rules: over the mean of the last windows before it by more than
// three standard deviations, for several windows in a row; a loss that is not finite is one that has. Pure.
//
//   band.Add(loss);       // Each window.
//   band.Freeze();        // The change is made.
//   band.Add(loss);
//   if (band.left()) ...  // Go back.
class LossBand {
 public:
  // The loss of a window; absent: nobody knows it.
  void Add(std::optional<double> loss);
  // What was added up to now is what later windows are held to. If fewer than kWindowsMin were, nothing is known of
  // its deviation: a loss leaves the band that is over kRiseMax times their mean; if none was, one that is not
  // finite.
  void Freeze();
  bool left() const { return over_ >= kWindowsOver; }

  static constexpr size_t kWindowsMin = 3;
  static constexpr double kRiseMax = 1.5;
  static constexpr size_t kWindowsKept = 5;
  static constexpr int kWindowsOver = 3;

 private:
  std::deque<double> before_;
  // Once it is frozen.
  std::optional<double> limit_;
  bool frozen_ = false;
  int over_ = 0;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_POLICIES_PARTS_LOSS_BAND_H_
