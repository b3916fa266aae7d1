#include "io/shuffle.hpp"

#include <algorithm>
#include <cstring>

namespace lockstep::io {
namespace {

// A constant `size` lets the compiler process a vector of elements at once.
template <std::size_t size>
void split_elements(std::size_t n, const std::byte* from, std::byte* to) noexcept {
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t byte = 0; byte < size; ++byte) to[byte * n + i] = from[i * size + byte];
}

template <std::size_t size>
void join_elements(std::size_t n, const std::byte* from, std::byte* to) noexcept {
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t byte = 0; byte < size; ++byte) to[i * size + byte] = from[byte * n + i];
}

void split_elements(std::size_t size, std::size_t n, const std::byte* from, std::byte* to) noexcept {
  for (std::size_t byte = 0; byte < size; ++byte)
    for (std::size_t i = 0; i < n; ++i) to[byte * n + i] = from[i * size + byte];
}

void join_elements(std::size_t size, std::size_t n, const std::byte* from, std::byte* to) noexcept {
  for (std::size_t byte = 0; byte < size; ++byte)
    for (std::size_t i = 0; i < n; ++i) to[i * size + byte] = from[byte * n + i];
}

/// The bytes of whole elements; 0 if HDF5 would leave everything unchanged.
std::size_t whole_bytes(std::size_t element_size, std::size_t bytes) noexcept {
  return element_size > 1 && bytes / element_size > 1 ? bytes - bytes % element_size : 0;
}

}  // namespace

void shuffle(std::size_t element_size, std::span<const std::byte> from, std::span<std::byte> to) noexcept {
  const std::size_t whole = whole_bytes(element_size, from.size());
  const std::size_t n = whole / std::max<std::size_t>(element_size, 1);
  switch (element_size) {
    case 2: split_elements<2>(n, from.data(), to.data()); break;
    case 4: split_elements<4>(n, from.data(), to.data()); break;
    case 8: split_elements<8>(n, from.data(), to.data()); break;
    default: split_elements(element_size, n, from.data(), to.data());
  }
  std::ranges::copy(from.subspan(whole), to.begin() + static_cast<std::ptrdiff_t>(whole));
}

void unshuffle(std::size_t element_size, std::span<const std::byte> from, std::span<std::byte> to) noexcept {
  const std::size_t whole = whole_bytes(element_size, from.size());
  const std::size_t n = whole / std::max<std::size_t>(element_size, 1);
  switch (element_size) {
    case 2: join_elements<2>(n, from.data(), to.data()); break;
    case 4: join_elements<4>(n, from.data(), to.data()); break;
    case 8: join_elements<8>(n, from.data(), to.data()); break;
    default: join_elements(element_size, n, from.data(), to.data());
  }
  std::ranges::copy(from.subspan(whole), to.begin() + static_cast<std::ptrdiff_t>(whole));
}

}  // namespace lockstep::io
