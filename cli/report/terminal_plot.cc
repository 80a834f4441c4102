#include "cli/report/terminal_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace rubato {
namespace {

constexpr std::array<const char*, 6> kMarkers = {"●", "▲", "■", "◆", "○", "△"};
constexpr std::array<const char*, 6> kColors = {"\x1b[34m", "\x1b[33m", "\x1b[32m", "\x1b[35m", "\x1b[31m", "\x1b[36m"};
constexpr char kReset[] = "\x1b[0m";
constexpr int kLabelWidth = 8;

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void Add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  double Share(double value) const { return (value - low) / (high - low); }
};

bool Finite(const std::pair<double, double>& point) {
  return std::isfinite(point.first) && std::isfinite(point.second);
}

// UTF-8 of U+2800 plus the dots.
std::string BrailleCell(int dots) {
  return {static_cast<char>(0xE2), static_cast<char>(0xA0 | (dots >> 6)), static_cast<char>(0x80 | (dots & 0x3F))};
}

// Dots and markers of all curves. A cell belongs to the curve that touched it last; its dots are all curves'.
class Canvas {
 public:
  Canvas(int width, int height) : width_(width), height_(height), cells_(static_cast<size_t>(width * height)) {}

  // Coordinates are shares of the drawing, from its lower left corner.
  void Dot(double x, double y, int series) {
    auto [column, row] = DotAt(x, y);
    static constexpr int kBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    Cell& cell = CellAt(column / 2, row / 4);
    cell.dots |= kBits[row % 4][column % 2];
    cell.series = series;
  }

  void Line(double x0, double y0, double x1, double y1, int series) {
    double dots = std::max(std::abs(x1 - x0) * width_ * 2, std::abs(y1 - y0) * height_ * 4);
    int steps = std::max(1, static_cast<int>(std::ceil(dots)));
    for (int i = 0; i <= steps; ++i) {
      double share = static_cast<double>(i) / steps;
      Dot(x0 + (x1 - x0) * share, y0 + (y1 - y0) * share, series);
    }
  }

  void Marker(double x, double y, int series) {
    auto [column, row] = DotAt(x, y);
    Cell& cell = CellAt(column / 2, row / 4);
    cell.marker = true;
    cell.series = series;
  }

  void Level(double y) {
    int row = DotAt(0, y).second / 4;
    for (int column = 0; column < width_; column += 2) CellAt(column, row).level = true;
  }

  std::string Row(int row, bool color) const {
    std::string text;
    for (int column = 0; column < width_; ++column) {
      const Cell& cell = cells_[static_cast<size_t>(row * width_ + column)];
      if (cell.series < 0) {
        absl::StrAppend(&text, cell.level ? "┈" : " ");
        continue;
      }
      size_t style = static_cast<size_t>(cell.series) % kMarkers.size();
      std::string glyph = cell.marker ? kMarkers[style] : BrailleCell(cell.dots);
      absl::StrAppend(&text, color ? kColors[style] : "", glyph, color ? kReset : "");
    }
    return text;
  }

 private:
  struct Cell {
    int dots = 0;
    int series = -1;
    bool marker = false;
    bool level = false;
  };

  Cell& CellAt(int column, int row) { return cells_[static_cast<size_t>(row * width_ + column)]; }

  std::pair<int, int> DotAt(double x, double y) const {
    int column = static_cast<int>(std::lround(x * (width_ * 2 - 1)));
    int row = static_cast<int>(std::lround((1 - y) * (height_ * 4 - 1)));
    return {std::clamp(column, 0, width_ * 2 - 1), std::clamp(row, 0, height_ * 4 - 1)};
  }

  const int width_;
  const int height_;
  std::vector<Cell> cells_;
};

void DrawSeries(const PlotSeries& series, int index, const Range& x, const Range& y, int width, Canvas* canvas) {
  std::vector<std::pair<double, double>> points;
  std::copy_if(series.points.begin(), series.points.end(), std::back_inserter(points), Finite);
  for (size_t i = 1; i < points.size(); ++i) {
    canvas->Line(x.Share(points[i - 1].first), y.Share(points[i - 1].second), x.Share(points[i].first),
                 y.Share(points[i].second), index);
  }
  // Markers at some distance of each other, so that the line stays visible between them; always one at the end.
  double last = -1;
  for (size_t i = 0; i < points.size(); ++i) {
    double share = x.Share(points[i].first);
    bool spaced = last < 0 || (share - last) * width >= 6;
    if (!spaced && i + 1 < points.size()) continue;
    canvas->Marker(share, y.Share(points[i].second), index);
    last = share;
  }
}

std::string Number(double value) { return absl::StrFormat("%.4g", value); }

std::string Axis(const Range& x, const PlotOptions& options) {
  std::string line(kLabelWidth, ' ');
  absl::StrAppend(&line, "└");
  for (int i = 0; i < options.width; ++i) absl::StrAppend(&line, "─");
  std::string low = Number(x.low);
  std::string high = Number(x.high);
  std::string middle = options.x_label;
  int free = options.width - static_cast<int>(low.size() + high.size() + middle.size());
  std::string left(static_cast<size_t>(std::max(1, free / 2)), ' ');
  std::string right(static_cast<size_t>(std::max(1, free - free / 2)), ' ');
  return absl::StrCat(line, "\n", std::string(kLabelWidth + 1, ' '), low, left, middle, right, high, "\n");
}

std::string Legend(const std::vector<PlotSeries>& series, const PlotOptions& options) {
  std::string text(kLabelWidth + 1, ' ');
  for (size_t i = 0; i < series.size(); ++i) {
    size_t style = i % kMarkers.size();
    absl::StrAppend(&text, i == 0 ? "" : "   ", options.color ? kColors[style] : "", kMarkers[style],
                    options.color ? kReset : "", " ", series[i].name);
  }
  if (options.level.has_value()) absl::StrAppend(&text, "   ┈ ", Number(*options.level));
  return text + "\n";
}

void Widen(Range* range) {
  if (range->high > range->low) return;
  double half = range->low == 0 ? 0.5 : std::abs(range->low) * 0.05;
  range->low -= half;
  range->high += half;
}

}  // namespace

std::string PlotCurves(const std::vector<PlotSeries>& series, const PlotOptions& options) {
  Range x;
  Range y;
  for (const PlotSeries& one : series) {
    for (const auto& point : one.points) {
      if (!Finite(point)) continue;
      x.Add(point.first);
      y.Add(point.second);
    }
  }
  if (!(x.low <= x.high)) return "";
  if (options.level.has_value()) y.Add(*options.level);
  Widen(&x);
  Widen(&y);
  Canvas canvas(options.width, options.height);
  if (options.level.has_value()) canvas.Level(y.Share(*options.level));
  for (size_t i = 0; i < series.size(); ++i) {
    DrawSeries(series[i], static_cast<int>(i), x, y, options.width, &canvas);
  }
  std::string text = absl::StrCat(std::string(kLabelWidth + 1, ' '), options.title, "\n");
  for (int row = 0; row < options.height; ++row) {
    bool labelled = row == 0 || row == options.height - 1 || row == (options.height - 1) / 2;
    double share = 1 - static_cast<double>(row) / std::max(1, options.height - 1);
    std::string label = labelled ? Number(y.low + (y.high - y.low) * share) : "";
    absl::StrAppend(&text, absl::StrFormat("%*s", kLabelWidth - 1, label), labelled ? " ┤" : " │",
                    canvas.Row(row, options.color), "\n");
  }
  return absl::StrCat(text, Axis(x, options), Legend(series, options));
}

}  // namespace rubato
