// refused: deleted
#include <utility>

#include "core/descriptor.hpp"

using lockstep::core::Descriptor;

#ifdef MISTAKE
Descriptor take(Descriptor& descriptor) { return Descriptor{descriptor}; }
#else
Descriptor take(Descriptor& descriptor) { return Descriptor{std::move(descriptor)}; }
#endif
