#ifndef RUBATO_CLI_REPORT_TERMINAL_PLOT_H_
#define RUBATO_CLI_REPORT_TERMINAL_PLOT_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rubato {

// One curve: points (x, y) in order of x. Points that are not finite are left out.
struct PlotSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

struct PlotOptions {
  std::string title;
  std::string x_label;
  // Size of the drawing area in characters.
  int width = 68;
  int height = 14;
  // ANSI colours. Without them each curve is told apart by its marker alone.
  bool color = false;
  // A dotted level across the drawing.
  std::optional<double> level;
};

// Draws curves with braille dots (2 by 4 to a character), axes with numbers, and a legend that gives each curve its
// marker. Empty when no series has a point.
std::string PlotCurves(const std::vector<PlotSeries>& series, const PlotOptions& options);

}  // namespace rubato

#endif  // RUBATO_CLI_REPORT_TERMINAL_PLOT_H_
