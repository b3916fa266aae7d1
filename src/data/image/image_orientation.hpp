// Pixels turned the way a camera was held.
// Invariant: what facts.orientation says is done once; facts stay as they are.
// Used by data/image only.
#pragma once

#include "data/image/image.hpp"

namespace lockstep::data {

/// Turns and mirrors the pixels as facts.orientation says.
void turn_upright(Image& image);

}  // namespace lockstep::data
