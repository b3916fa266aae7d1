#include <Kokkos_Core.hpp>

#include "core/error.hpp"
#include "tensor/lookup.hpp"

namespace lockstep::tensor {

void Lookup::apply_batch(std::span<const Image> images, std::span<const Window> windows,
                         std::span<std::byte> out) const {
  core::require(images.size() == windows.size(), "each image has a window");
  core::require(Kokkos::is_initialized(), "a tensor session is there");
  if (images.empty()) return;
  const std::size_t bytes = out.size() / images.size();
  for (const Window& window : windows)
    core::require(n_bytes(window.height, window.width) * images.size() == out.size(), "room for windows of equal size");
  const Kokkos::RangePolicy<Kokkos::DefaultHostExecutionSpace> all{0, images.size()};
  Kokkos::parallel_for("lookup", all,
                       [&](std::size_t i) { apply(images[i], windows[i], out.subspan(i * bytes, bytes)); });
  Kokkos::fence();
}

}  // namespace lockstep::tensor
