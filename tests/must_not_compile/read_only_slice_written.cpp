// refused: read-only|const-qualified
#include "core/slice.hpp"

#ifdef MISTAKE
using Element = const float;
#else
using Element = float;
#endif

void zero(std::span<Element> arena, lockstep::core::Slice slice) {
  for (Element& element : slice.of(arena)) element = 0;
}
