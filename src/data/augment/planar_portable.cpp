#include "data/augment/planar.hpp"

namespace lockstep::data {

ConvertPlanar find_planar() noexcept { return nullptr; }

}  // namespace lockstep::data
