#include "tensor/planar.hpp"

namespace lockstep::tensor {

ConvertPlanar find_planar() noexcept { return nullptr; }

}  // namespace lockstep::tensor
