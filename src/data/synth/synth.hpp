// Data made only from a seed: for machines without a network, for tests and for measurements.
// Invariant: sample i is a pure function of (kind, options, i), on any thread.
// Used by `lockstep shard synth` and the trainer; each kind is one file of this folder.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "data/format/source.hpp"

namespace lockstep::data {

struct SynthOptions {
  std::uint64_t samples = 0;  ///< 0: the kind's default
  std::uint64_t seed = 1;
  // images
  std::uint64_t height = 64, width = 64, channels = 3;
  std::uint64_t classes = 10;
  // ratings
  std::uint64_t users = 610, items = 9724;
};

struct Synthesizer {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<Source> (*open)(const SynthOptions& options);
};

/// x float32 [20] uniform in [0, 1), y float32 [1] uniform: the tutorial's 2048 pairs.
std::unique_ptr<Source> synth_toy(const SynthOptions& options);
/// uint8 [28, 28] glyphs of the ten digits, drawn as strokes, warped, blurred, noisy.
std::unique_ptr<Source> synth_digits(const SynthOptions& options);
/// uint8 [height, width, channels]: a texture per class plus noise.
std::unique_ptr<Source> synth_images(const SynthOptions& options);
/// x int32 [2] (user, item), y float32 [] (0.5 ... 5.0) from a low-rank model plus noise; popular items are rated more.
std::unique_ptr<Source> synth_ratings(const SynthOptions& options);

inline constexpr std::array<Synthesizer, 4> synthesizers{{
    {"toy", "the tutorial's regression: 2048 pairs of 20 numbers and 1", synth_toy},
    {"digits", "28x28 drawings of ten digits, too varied for a linear classifier", synth_digits},
    {"images", "images of any shape and number of classes", synth_images},
    {"ratings", "users, items and ratings", synth_ratings},
}};

}  // namespace lockstep::data
