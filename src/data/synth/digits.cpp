#include <algorithm>
#include <cmath>
#include <string>

#include "data/format/label.hpp"
#include "data/synth/glyphs.hpp"
#include "data/synth/streams.hpp"
#include "data/synth/synth.hpp"

namespace lockstep::data {
namespace {

constexpr int side = 28;
constexpr std::size_t n_pixels = std::size_t{side} * side;
using Field = std::array<float, n_pixels>;

struct Point {
  float x = 0;
  float y = 0;
};

/// All randomness in the shape of one drawing: maps a point of a glyph to pixels.
class Warp {
 public:
  explicit Warp(core::Random& random) {
    const float angle = uniform(random, -0.436F, 0.436F);  // 25 degrees
    const float shear = uniform(random, -0.35F, 0.35F);
    const float scale_x = 20 * uniform(random, 0.7F, 1.2F);
    const float scale_y = scale_x * uniform(random, 0.85F, 1.18F);
    const float sine = std::sin(angle), cosine = std::cos(angle);
    matrix_ = {cosine * scale_x, cosine * shear * scale_y - sine * scale_y,  //
               sine * scale_x, sine * shear * scale_y + cosine * scale_y};
    shift_ = {side / 2.0F + uniform(random, -3, 3), side / 2.0F + uniform(random, -3, 3)};
    for (Wave& wave : waves_) {
      wave = {{uniform(random, -4, 4), uniform(random, -4, 4)},
              uniform(random, 0, 6.2832F),
              {uniform(random, -0.06F, 0.06F), uniform(random, -0.06F, 0.06F)}};
    }
  }

  [[nodiscard]] Point operator()(Point p) const {
    Point q = p;
    for (const Wave& wave : waves_) {
      const float height = std::sin(wave.turn.x * p.x + wave.turn.y * p.y + wave.phase);
      q.x += wave.push.x * height;
      q.y += wave.push.y * height;
    }
    return {matrix_[0] * q.x + matrix_[1] * q.y + shift_.x, matrix_[2] * q.x + matrix_[3] * q.y + shift_.y};
  }

 private:
  /// A smooth displacement: neighbours move alike.
  struct Wave {
    Point turn{};
    float phase = 0;
    Point push{};
  };

  std::array<float, 4> matrix_{};
  Point shift_{};
  std::array<Wave, 3> waves_{};
};

/// The squared distance of each pixel's centre to the drawing, exact up to `reach` pixels.
class DistanceField {
 public:
  explicit DistanceField(float reach) : reach_{reach} { squares_.fill(reach * reach); }

  void add_line(Point a, Point b) {
    const Point along{b.x - a.x, b.y - a.y};
    const float inverse = 1 / std::max(along.x * along.x + along.y * along.y, 1e-6F);
    const auto [left, right] = pixels_near(a.x, b.x);
    const auto [top, bottom] = pixels_near(a.y, b.y);
    for (int y = top; y < bottom; ++y) {
      const float from_y = static_cast<float>(y) + 0.5F - a.y;
      float* row = squares_.data() + y * side;
      for (int x = left; x < right; ++x) {
        const float from_x = static_cast<float>(x) + 0.5F - a.x;
        const float place = (from_x * along.x + from_y * along.y) * inverse;
        const float inside = std::min(std::max(place, 0.0F), 1.0F);
        const float dx = from_x - inside * along.x, dy = from_y - inside * along.y;
        row[x] = std::min(row[x], dx * dx + dy * dy);
      }
    }
  }

  // A Catmull-Rom spline, with three lines per span.
  void add_curve(std::span<const Point> points) {
    Point last = points.front();
    for (std::size_t i = 0; i + 1 < points.size(); ++i) {
      const Point p1 = points[i], p2 = points[i + 1];
      const Point p0 = i > 0 ? points[i - 1] : p1, p3 = i + 2 < points.size() ? points[i + 2] : p2;
      for (const float t : {1 / 3.0F, 2 / 3.0F, 1.0F}) {
        const Point next{spline(p0.x, p1.x, p2.x, p3.x, t), spline(p0.y, p1.y, p2.y, p3.y, t)};
        add_line(last, next);
        last = next;
      }
    }
  }

  void add_stroke(std::span<const Point> points, bool is_curved) {
    if (is_curved) return add_curve(points);
    for (std::size_t i = 0; i + 1 < points.size(); ++i) add_line(points[i], points[i + 1]);
  }

  /// Adds `ink` to pixels within `radius`, with an edge one pixel wide.
  void fill(float radius, float ink, Field& field) const {
    for (std::size_t i = 0; i < n_pixels; ++i) {
      const float cover = std::min(std::max(radius + 0.5F - std::sqrt(squares_[i]), 0.0F), 1.0F);
      field[i] = std::max(field[i], ink * cover);
    }
  }

 private:
  [[nodiscard]] std::pair<int, int> pixels_near(float a, float b) const {
    const float low = std::min(a, b) - reach_, high = std::max(a, b) + reach_;
    return {static_cast<int>(std::clamp(low, 0.0F, float{side})),
            static_cast<int>(std::clamp(high + 1, 0.0F, float{side}))};
  }

  static float spline(float p0, float p1, float p2, float p3, float t) {
    return p1 + 0.5F * t * (p2 - p0 + t * (2 * p0 - 5 * p1 + 4 * p2 - p3 + t * (3 * (p1 - p2) + p3 - p0)));
  }

  float reach_;
  Field squares_;
};

void draw_glyph(const Glyph& glyph, core::Random& random, Field& field) {
  const Warp warp{random};
  const float radius = uniform(random, 0.6F, 1.5F);
  DistanceField distances{radius + 0.5F};
  for (std::size_t s = 0; s < glyph.n; ++s) {
    std::array<Point, 11> points;
    const Stroke& stroke = glyph.strokes[s];
    for (std::size_t i = 0; i < stroke.n; ++i) {
      const Point jitter{uniform(random, -0.02F, 0.02F), uniform(random, -0.02F, 0.02F)};
      const Point drawn{static_cast<float>(stroke.points[i].x) / 100, static_cast<float>(stroke.points[i].y) / 100};
      points[i] = warp({drawn.x + jitter.x, drawn.y + jitter.y});
    }
    distances.add_stroke({points.data(), stroke.n}, stroke.is_curved);
  }
  distances.fill(radius, 1, field);
}

// Draws something that does not belong to the digit: in one of four drawings, a short stroke anywhere.
void draw_distractor(core::Random& random, Field& field) {
  if (random.below(4) != 0) return;
  const Point a{uniform(random, 0, side), uniform(random, 0, side)};
  const float angle = uniform(random, 0, 6.2832F), length = uniform(random, 3, 7);
  DistanceField distances{1.5F};
  distances.add_line(a, {a.x + length * std::cos(angle), a.y + length * std::sin(angle)});
  const float radius = uniform(random, 0.4F, 0.9F), ink = uniform(random, 0.4F, 0.9F);
  distances.fill(radius, ink, field);
}

// Each pixel gives `share` to each of its neighbours in the row, then in the column; outside is empty.
void blur(float share, Field& field) {
  for (const int step : {1, side}) {
    const Field before = field;
    for (int i = 0; i < static_cast<int>(n_pixels); ++i) {
      const int place = step == 1 ? i % side : i / side;
      const float low = place > 0 ? before[i - step] : 0, high = place + 1 < side ? before[i + step] : 0;
      field[i] = (1 - 2 * share) * before[i] + share * (low + high);
    }
  }
}

void store(const Field& field, core::Random& random, std::span<std::byte> x) {
  const float paper = uniform(random, 0, 40), ink = uniform(random, 120, 255) - paper;
  const float noise = uniform(random, 0, 28) / 128;
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < n_pixels; ++i, bits >>= 8) {
    if (i % 8 == 0) bits = random.next();
    const float level = paper + ink * field[i] + noise * (static_cast<float>(bits & 255) - 127.5F);
    x[i] = static_cast<std::byte>(std::clamp(level + 0.5F, 0.0F, 255.0F));
  }
}

class DigitsSource final : public Source {
 public:
  explicit DigitsSource(const SynthOptions& options)
      : n_samples_{options.samples > 0 ? options.samples : 60'000}, seed_{options.seed} {
    spec_.x = {core::DType::uint8, {side, side}};
    spec_.y = {label_dtype(10), {}};
    for (int digit = 0; digit < 10; ++digit) spec_.classes.push_back(std::to_string(digit));
  }

  [[nodiscard]] const SetSpec& spec() const override { return spec_; }
  [[nodiscard]] std::vector<SourceSplit> splits() const override {
    return {{"train", n_samples_}, {"val", std::max<std::uint64_t>(n_samples_ / 6, 1)}};
  }

  void read(std::size_t split, std::uint64_t first, std::uint64_t n, std::span<std::byte> x,
            std::span<std::byte> y) override {
    for (std::uint64_t i = 0; i < n; ++i) {
      core::Random random = synth_random(seed_, SynthKind::digits, split, first + i);
      const std::uint64_t digit = random.below(10), way = random.below(3);
      Field field{};
      draw_glyph(glyphs[3 * digit + way], random, field);
      draw_distractor(random, field);
      blur(uniform(random, 0, 0.22F), field);
      store(field, random, x.subspan(i * n_pixels, n_pixels));
      store_label(digit, y.subspan(i * spec_.y.bytes(), spec_.y.bytes()));
    }
  }

 private:
  std::uint64_t n_samples_;
  std::uint64_t seed_;
  SetSpec spec_{};
};

}  // namespace

std::unique_ptr<Source> synth_digits(const SynthOptions& options) { return std::make_unique<DigitsSource>(options); }

}  // namespace lockstep::data
