// The ten digits as strokes of a pen, in the ways people write them.
// Invariant: x to the right and y down, both within [-50, 50]; at most 11 points a stroke and 3 strokes a glyph.
// Used by data/synth/digits.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>

namespace lockstep::data {

/// In hundredths of a glyph's height.
struct GlyphPoint {
  int x = 0;
  int y = 0;
};

/// Straight lines from point to point, or a smooth curve through them.
struct Stroke {
  std::array<GlyphPoint, 11> points{};
  std::size_t n = 0;
  bool is_curved = false;

  constexpr Stroke() = default;
  constexpr Stroke(bool curved, std::initializer_list<GlyphPoint> list) : is_curved{curved} {
    for (const GlyphPoint point : list) points[n++] = point;
  }
};

struct Glyph {
  std::array<Stroke, 3> strokes{};
  std::size_t n = 0;

  constexpr Glyph(std::initializer_list<Stroke> list) {
    for (const Stroke& stroke : list) strokes[n++] = stroke;
  }
};

namespace glyph_detail {
inline constexpr bool line = false, curve = true;
}

/// Three ways to write each digit: those of digit d are [3 d, 3 d + 3).
inline constexpr std::array<Glyph, 30> glyphs = [] {
  using glyph_detail::curve;
  using glyph_detail::line;
  return std::array<Glyph, 30>{{
      // 0: round, narrow, open at the top
      {{curve, {{0, -50}, {-24, -32}, {-30, 0}, {-22, 34}, {0, 50}, {24, 32}, {30, 0}, {22, -34}, {0, -50}}}},
      {{curve, {{2, -50}, {-16, -30}, {-20, 2}, {-13, 36}, {0, 50}, {15, 33}, {20, 0}, {14, -34}, {2, -50}}}},
      {{curve, {{10, -46}, {-18, -40}, {-31, -5}, {-24, 32}, {2, 50}, {26, 30}, {30, -5}, {18, -38}, {-6, -50}}}},
      // 1: a bar, with a flag, with flag and foot
      {{line, {{0, -50}, {0, 50}}}},
      {{line, {{-16, -26}, {5, -50}, {5, 50}}}},
      {{line, {{-18, -28}, {3, -50}, {3, 50}}}, {line, {{-18, 50}, {24, 50}}}},
      // 2: with an edge, with a loop, with a wave
      {{curve, {{-28, -26}, {-12, -47}, {16, -46}, {28, -22}, {12, 8}, {-30, 50}}}, {line, {{-30, 50}, {32, 50}}}},
      {{curve,
        {{-26, -30}, {-5, -50}, {22, -38}, {20, -10}, {-6, 28}, {-24, 46}, {-30, 34}, {-16, 27}, {8, 42}, {33, 44}}}},
      {{curve, {{-24, -36}, {2, -50}, {25, -34}, {16, -4}, {-28, 42}}},
       {curve, {{-28, 42}, {-10, 38}, {12, 48}, {32, 40}}}},
      // 3: round, with a notch, with a flat top
      {{curve, {{-24, -40}, {2, -50}, {25, -34}, {18, -10}, {-6, -2}}},
       {curve, {{-6, -2}, {22, 8}, {29, 28}, {10, 48}, {-14, 48}, {-30, 36}}}},
      {{curve, {{-26, -36}, {-2, -50}, {22, -36}, {14, -10}, {-10, 0}, {16, 6}, {28, 28}, {4, 50}, {-28, 40}}}},
      {{line, {{-26, -48}, {24, -48}, {-2, -10}}},
       {curve, {{-2, -10}, {22, 0}, {29, 24}, {10, 47}, {-14, 48}, {-30, 36}}}},
      // 4: open, closed, with a long bar
      {{line, {{-12, -50}, {-28, 10}, {30, 10}}}, {line, {{12, -18}, {10, 50}}}},
      {{line, {{12, 50}, {12, -50}, {-30, 16}, {32, 16}}}},
      {{curve, {{-18, -48}, {-26, -20}, {-22, 2}, {0, 6}, {22, 0}}}, {line, {{22, -48}, {18, 50}}}},
      // 5: with edges, round, with its roof apart
      {{line, {{27, -50}, {-20, -50}, {-24, -8}}},
       {curve, {{-24, -8}, {2, -15}, {25, 2}, {28, 25}, {8, 47}, {-28, 40}}}},
      {{curve, {{26, -46}, {-4, -48}, {-22, -32}, {-10, -12}, {16, 2}, {26, 24}, {6, 48}, {-26, 40}}}},
      {{curve, {{-18, -46}, {-24, -10}, {4, -14}, {26, 8}, {20, 36}, {-4, 50}, {-28, 42}}},
       {line, {{-14, -48}, {30, -44}}}},
      // 6: with a bent back, with a straight back, with a small bowl
      {{curve,
        {{20, -50}, {-10, -30}, {-27, 5}, {-25, 33}, {-2, 50}, {22, 40}, {26, 18}, {6, 2}, {-16, 10}, {-26, 26}}}},
      {{curve, {{6, -50}, {-14, -16}, {-24, 16}, {-18, 42}, {6, 50}, {24, 32}, {16, 10}, {-6, 8}, {-20, 24}}}},
      {{curve, {{24, -44}, {0, -48}, {-24, -16}, {-26, 24}, {-6, 48}, {16, 42}, {20, 22}, {2, 10}, {-20, 20}}}},
      // 7: plain, with a bar, with a bent leg
      {{line, {{-28, -48}, {28, -48}, {-5, 50}}}},
      {{line, {{-28, -46}, {28, -48}, {-8, 50}}}, {line, {{-14, 2}, {24, 0}}}},
      {{line, {{-27, -34}, {-27, -46}, {26, -46}}}, {curve, {{26, -46}, {10, -14}, {-2, 18}, {-4, 50}}}},
      // 8: in one go, of two bowls, narrow
      {{curve,
        {{20, -36},
         {0, -50},
         {-20, -36},
         {-13, -12},
         {14, 10},
         {25, 30},
         {0, 50},
         {-25, 30},
         {-14, 10},
         {13, -12},
         {20, -36}}}},
      {{curve, {{0, -50}, {-20, -38}, {-19, -14}, {0, -3}, {19, -14}, {20, -38}, {0, -50}}},
       {curve, {{0, -3}, {-25, 12}, {-24, 38}, {0, 50}, {24, 38}, {25, 12}, {0, -3}}}},
      {{curve,
        {{17, -40},
         {-4, -50},
         {-16, -32},
         {-6, -8},
         {12, 12},
         {18, 34},
         {-2, 50},
         {-19, 32},
         {-8, 10},
         {10, -10},
         {17, -40}}}},
      // 9: with a bent leg, with a straight leg, with a hook
      {{curve, {{24, -24}, {6, -2}, {-18, -8}, {-25, -32}, {-4, -50}, {19, -43}, {26, -20}, {20, 15}, {2, 50}}}},
      {{curve, {{20, -20}, {-2, -4}, {-24, -18}, {-16, -42}, {6, -50}, {22, -36}, {20, -20}}},
       {line, {{22, -40}, {16, 50}}}},
      {{curve,
        {{23, -28}, {8, -6}, {-16, -8}, {-25, -30}, {-6, -50}, {18, -42}, {25, -10}, {20, 30}, {-2, 50}, {-24, 40}}}},
  }};
}();

}  // namespace lockstep::data
